"""Residuals of embeddings: none for the optima of the theorem, and what they are for others."""

from __future__ import annotations

import numpy as np
import pytest

from sandlab.circuits.topics.optima import block_value, diagonal_value, embedding_optimum
from sandlab.lenses.topics.gram import embedding_residuals
from sandlab.worlds.topics.masking import InfiniteDocuments, MaskedStatistics

S = MaskedStatistics(5, 4, 2)


@pytest.mark.parametrize("kind", ["diagonal", "block"])
def test_optimal_embeddings_have_no_residual(kind: str) -> None:
    table, _ = embedding_optimum(S, kind)
    assert max(embedding_residuals(table.T @ table, S).values()) < 1e-12


def test_gram_matrices_without_a_residual_predict_every_document_and_others_do_not() -> None:
    """Any shifts and any spread within topics: what decides is the prediction, with the bias of the theorem."""
    draws = np.random.default_rng(0)
    true = InfiniteDocuments(S).every()
    seen, (_, bias) = S.masked(true), embedding_optimum(S)
    shifts, spread = draws.normal(size=S.vocab), draws.normal(size=(S.vocab, 5, 4))
    spread -= spread.mean(2, keepdims=True)
    gram = S.topic_sums.T @ S.topic_sums * S.c3 / 4 + shifts[:, None]
    gram[:, 1:] += spread.reshape(S.vocab, 20)
    gram[:, 0] = -S.c2 * shifts
    assert max(embedding_residuals(gram, S).values()) < 1e-12
    np.testing.assert_allclose(seen @ gram.T + bias, true, atol=1e-12)
    for row, column, name in ((2, 0, "mask"), (2, 2, "own topic"), (2, 12, "other topics")):
        wrong = gram.copy()
        wrong[row, column] += 0.1
        assert embedding_residuals(wrong, S)[name] > 0.05
        assert np.abs(seen @ wrong.T + bias - true).max() > 1e-3


def test_the_printed_example_and_value_matrices_are_off_by_known_amounts() -> None:
    printed = embedding_residuals(S.c3 * np.eye(S.vocab), S)
    assert printed["mask"] == pytest.approx(S.c3) and printed["own topic"] < 1e-12  # E₀₀ must be 0
    for value in (block_value(S), diagonal_value(S)):
        assert embedding_residuals(value, S)["mask"] == pytest.approx(S.c1)  # there is no bias beside these
