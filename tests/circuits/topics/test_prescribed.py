"""Models with prescribed weights: their predictions on long documents and their loss are those of the closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.circuits.topics.prescribed import embedding_topics, value_topics
from sandlab.lenses.topics.stage_two import mask_queries, normalisers, stage_two_loss
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.worlds.topics.masking import InfiniteDocuments, MaskedStatistics

S = MaskedStatistics(8, 12, 3)


def document() -> tuple[np.ndarray, torch.Tensor]:
    """Frequencies of a document on the first topics, before and after masking."""
    true = InfiniteDocuments(S).every()[0]
    return true, torch.from_numpy(S.masked(true[None])[0])


def loss(model: OneLayerTopics) -> float:
    """Σ over true and shown words on the infinite document, predictions by the model's own attention."""
    true, seen = document()
    with torch.no_grad():
        outputs = model._output(model.word_attention(seen[None]))[0].numpy()
    shown = np.eye(S.vocab) * S.keep + S.swap / (S.vocab - 1)
    shown[:, 0] = 1 - S.keep - S.swap
    shown[0] = 0.0
    squares = (outputs**2).sum(1)[None] + 1 - 2 * outputs.T  # [true, shown]
    return float((true[:, None] * shown * squares).sum())


@pytest.mark.parametrize("levels", [(1.0, 1.0), (3.0, 5.0), (0.1, 1000.0)])
@pytest.mark.parametrize("value", ["block", "diagonal"])
def test_the_model_has_the_loss_of_the_landscape(value: str, levels: tuple[float, float]) -> None:
    model = value_topics(S, value, alpha=levels[0], beta=levels[1])
    expected = float(stage_two_loss(S, *levels, value=value)) + mask_queries(S)
    assert loss(model) == pytest.approx(expected, abs=1e-12)


def test_levels_of_equal_mean_have_equal_loss_with_blocks_only() -> None:
    pairs = ((2.0, 14.0), (3.0, 3.0))
    block, diagonal = (
        [loss(value_topics(S, kind, alpha=a, beta=b)) for a, b in pairs] for kind in ("block", "diagonal")
    )
    assert block[0] == pytest.approx(block[1], abs=1e-10)
    assert abs(diagonal[0] - diagonal[1]) > 1e-4


def test_attention_of_a_present_word_is_that_of_the_proposition() -> None:
    _, seen = document()
    row = value_topics(S, alpha=3.0, beta=5.0).word_attention(seen[None])[0, 1]
    z1, _ = normalisers(S, 3.0, 5.0)
    expected = np.array([5 * S.p_present, 3 * S.p_present, S.p_present, S.p_absent, S.mask_mass]) / z1
    np.testing.assert_allclose(row[[1, 2, 20, S.vocab - 1, 0]], expected, rtol=1e-12)
    assert float(row.sum()) == pytest.approx(1.0)


def test_attention_of_an_absent_word_is_that_of_the_proposition() -> None:
    """Another word, the same topic and other topics are absent too: p₂; words of present topics have p₁."""
    _, seen = document()
    shown = S.vocab - 1
    row = value_topics(S, alpha=3.0, beta=5.0).word_attention(seen[None])[0, shown]
    _, z2 = normalisers(S, 3.0, 5.0)
    expected = np.array([5 * S.p_absent, 3 * S.p_absent, S.p_present, S.p_absent, S.mask_mass]) / z2
    np.testing.assert_allclose(row[[shown, shown - 1, 1, shown - S.words, 0]], expected, rtol=1e-12)
    assert float(row.sum()) == pytest.approx(1.0)


def test_a_query_at_the_mask_attends_uniformly_whatever_the_levels() -> None:
    _, seen = document()
    row = value_topics(S, alpha=3.0, beta=5.0).word_attention(seen[None])[0, 0]
    torch.testing.assert_close(row, seen)


@pytest.mark.parametrize("kind", ["diagonal", "block"])
def test_optimal_embeddings_predict_the_document(kind: str) -> None:
    true, seen = document()
    with torch.no_grad():
        np.testing.assert_allclose(embedding_topics(S, kind)._output(seen), true, atol=1e-14)
