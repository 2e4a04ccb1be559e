"""Optima of stage 1 against brute force over all documents, and against the minimiser found by linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.circuits.topics.optima import (
    block_value,
    diagonal_value,
    embedding_optimum,
    level_attention,
    ridge_fit,
    ridge_value,
    value_family,
)
from sandlab.worlds.topics.masking import InfiniteDocuments, MaskedStatistics, topic_of_word

SIZES = [(5, 4, 2), (6, 3, 1), (6, 3, 3), (10, 10, 2)]


def documents(s: MaskedStatistics) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies before and after masking of all documents."""
    true = InfiniteDocuments(s).every()
    return true, s.masked(true)


def squared_loss(value: np.ndarray, true: np.ndarray, seen: np.ndarray) -> float:
    """Mean over documents and true words w ~ P of ‖W x − e_w‖², word by word."""
    outputs = seen @ value.T
    each = [(row[None] - np.eye(len(row))) ** 2 for row in outputs]
    return float(np.mean([law @ squares.sum(1) for law, squares in zip(true, each)]))


@pytest.mark.parametrize(("topics", "words", "present"), SIZES)
def test_every_member_of_the_family_predicts_the_document_and_others_do_worse(
    topics: int, words: int, present: int
) -> None:
    s, rng = MaskedStatistics(topics, words, present), np.random.default_rng(0)
    true, seen = documents(s)
    value = value_family(s, rng.normal(size=s.vocab), rng.normal(size=(s.vocab, s.vocab)))
    np.testing.assert_allclose(seen @ value.T, true, atol=1e-12)
    least = squared_loss(value, true, seen)
    assert least == pytest.approx(1 - 1 / (present * words), abs=1e-12)
    assert np.linalg.matrix_rank(seen.T @ seen) == topics
    assert squared_loss(value + 0.01 * rng.normal(size=value.shape), true, seen) > least + 1e-9


@pytest.mark.parametrize(("topics", "words", "present"), SIZES)
def test_ridge_regression_tends_to_the_block_optimum(topics: int, words: int, present: int) -> None:
    s = MaskedStatistics(topics, words, present)
    found = ridge_value(s, InfiniteDocuments(s).every(), 1e-9)
    np.testing.assert_allclose(found, block_value(s), atol=1e-6)


@pytest.mark.parametrize(
    ("topics", "words", "mask", "different", "same"),
    [
        (10, 10, 0.05419075144508671, -0.007586705202312139, 0.10802023121387284),
        (5, 4, 0.11295180722891567, -0.016387805557490073, 0.27262953548297236),
        (100, 300, 0.00027728072640156165, -3.846786573894127e-05, 0.0038150966814672247),
    ],
)
def test_the_block_optimum_has_the_known_entries(
    topics: int, words: int, mask: float, different: float, same: float
) -> None:
    if topics * words > 1000:
        s = MaskedStatistics(topics, words)
        shift = -(s.c1 * s.c2 + s.c3) / (s.c2**2 + topics * words)
        entries = (-s.c1 - s.c2 * shift, shift, shift + s.c3 / words)
    else:
        value = block_value(MaskedStatistics(topics, words))
        entries = (value[1, 0], value[1, -1], value[1, 2])
        assert not value[0].any()
    np.testing.assert_allclose(entries, (mask, different, same), rtol=1e-9)


def test_the_block_optimum_has_the_least_norm_of_the_family() -> None:
    s = MaskedStatistics(5, 4, 2)
    shifts = torch.zeros(s.vocab, dtype=torch.float64, requires_grad=True)
    blocks = torch.from_numpy(s.topic_sums.T @ s.topic_sums)
    inside = blocks * s.c3 / s.words + shifts[:, None]
    column = -s.c2 * shifts - s.c1 * torch.from_numpy((np.arange(s.vocab) > 0).astype(float))
    (inside[:, 1:].square().sum() + column.square().sum()).backward()
    curvature = 2 * (s.c2**2 + s.topics * s.words)  # the norm is quadratic in each shift: one Newton step ends
    assert shifts.grad is not None
    best = -shifts.grad.numpy() / curvature
    np.testing.assert_allclose(value_family(s, best), block_value(s), atol=1e-14)
    assert np.linalg.norm(block_value(MaskedStatistics())) == pytest.approx(3.53, abs=5e-3)


def test_the_diagonal_optimum_is_the_member_without_shift() -> None:
    s = MaskedStatistics(5, 4, 2)
    true, seen = documents(s)
    np.testing.assert_allclose(seen @ diagonal_value(s).T, true, atol=1e-14)
    spread = s.c3 * np.eye(s.vocab)
    spread[0] = 0.0
    np.testing.assert_allclose(value_family(s, np.zeros(s.vocab), spread), diagonal_value(s), atol=1e-14)


def test_the_diagonal_optimum_is_not_the_only_one_row_0_is_free() -> None:
    s = MaskedStatistics(5, 4, 2)
    true, seen = documents(s)
    shifts, spread = np.zeros(s.vocab), s.c3 * np.eye(s.vocab)
    shifts[0], spread[0] = 0.7, 0.0
    other = value_family(s, shifts, spread)
    np.testing.assert_allclose(other[1:], diagonal_value(s)[1:], atol=1e-14)
    assert np.abs(other[0]).min() > 0.1
    np.testing.assert_allclose(seen @ other.T, true, atol=1e-12)


@pytest.mark.parametrize(("present", "loss"), [(1, 0.9), (2, 0.95), (3, 0.9667)])
def test_the_published_sizes_have_the_known_losses(present: int, loss: float) -> None:
    s = MaskedStatistics(10, 10, present)
    assert squared_loss(block_value(s), *documents(s)) == pytest.approx(1 - 1 / (10 * present), abs=1e-12)
    assert 1 - 1 / (10 * present) == pytest.approx(loss, abs=5e-5)


@pytest.mark.parametrize("kind", ["block", "diagonal"])
@pytest.mark.parametrize("mass", [0.0, 0.05, 0.4])
def test_with_another_weight_of_the_mask_only_the_constant_of_that_map_changes(kind: str, mass: float) -> None:
    """κ = W_i0·y₀ + W_diff·(1 − y₀) for blocks, −c₁y₀ for the diagonal: what the exact landscape adds to c₃x."""
    s, rng = MaskedStatistics(5, 4, 2), np.random.default_rng(3)
    attended = np.concatenate([[mass], (1 - mass) * rng.dirichlet(np.ones(20))])
    value = block_value(s) if kind == "block" else diagonal_value(s)
    means = np.repeat(attended[1:].reshape(5, 4).mean(1), 4) if kind == "block" else attended[1:]
    constant = -s.c1 * mass if kind == "diagonal" else value[1, 0] * mass + value[1, -1] * (1 - mass)
    np.testing.assert_allclose((value @ attended)[1:], s.c3 * means + constant, atol=1e-14)


@pytest.mark.parametrize("kind", ["block", "diagonal"])
def test_a_value_optimum_acts_as_an_affine_map_of_attention(kind: str) -> None:
    s, rng = MaskedStatistics(5, 4, 2), np.random.default_rng(1)
    attended = np.concatenate([[s.mask_mass], (1 - s.mask_mass) * rng.dirichlet(np.ones(20))])
    value = block_value(s) if kind == "block" else diagonal_value(s)
    means = np.repeat(attended[1:].reshape(5, 4).mean(1), 4) if kind == "block" else attended[1:]
    np.testing.assert_allclose((value @ attended)[1:], s.c3 * means - s.offset, atol=1e-12)


@pytest.mark.parametrize(("kind", "width"), [("diagonal", 21), ("block", 5)])
def test_optimal_embeddings_predict_every_document(kind: str, width: int) -> None:
    s = MaskedStatistics(5, 4, 2)
    true, seen = documents(s)
    embedding, bias = embedding_optimum(s, kind)
    assert embedding.shape == (width, s.vocab)
    np.testing.assert_allclose(seen @ embedding.T @ embedding + bias, true, atol=1e-14)


def test_the_printed_example_of_an_optimal_gram_matrix_fails_at_the_mask() -> None:
    s = MaskedStatistics(5, 4, 2)
    true, seen = documents(s)
    _, bias = embedding_optimum(s)
    outputs = seen @ (s.c3 * np.eye(s.vocab)) + bias
    np.testing.assert_allclose(outputs[:, 1:], true[:, 1:], atol=1e-14)
    assert outputs[0, 0] == pytest.approx(s.c3 * s.mask_mass)


def test_attention_levels_are_those_asked_for() -> None:
    s = MaskedStatistics(3, 4, 2)
    key, query = level_attention(s, 3.0, 5.0)
    weights = np.exp(key.T @ query / np.sqrt(s.vocab))
    topic = topic_of_word(np.arange(s.vocab), 4)
    for i in range(s.vocab):
        for j in range(s.vocab):
            level = 5.0 if i == j > 0 else 3.0 if topic[i] == topic[j] > 0 else 1.0
            assert weights[i, j] == pytest.approx(level, rel=1e-12)


def test_the_optimum_without_masked_positions_in_view_has_no_shift() -> None:
    """When nothing attends to predicted positions, x is the document itself: own-topic entries 1/v, others 0."""
    s = MaskedStatistics(topics=5, words=4)
    frequencies = InfiniteDocuments(s).every()
    found = ridge_fit(frequencies, frequencies, 1e-9)
    expected = s.topic_sums.T @ s.topic_sums / s.words
    np.testing.assert_allclose(found, expected, atol=1e-6)
