"""Average attention against a loop over pairs of positions, and the law that its mean must obey."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.circuits.topics.prescribed import value_topics
from sandlab.lenses.topics.attention import attention_by_topic
from sandlab.models.base import seeded
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.random import rng
from sandlab.worlds.topics.documents import LDATopics
from sandlab.worlds.topics.masking import MaskedStatistics

WORLD = LDATopics(topics=4, words=3, lengths=(6, 15), concentration=0.5)


def random_model() -> OneLayerTopics:
    with seeded(0):
        return OneLayerTopics(vocab=13, std=1.0, path="full").double()


@pytest.mark.parametrize(("reference", "shift"), [(None, 0), (100.0, 0), (None, 1)])
def test_averages_are_those_of_a_loop_over_pairs(reference: float | None, shift: int) -> None:
    model, documents = random_model(), WORLD.sample(5, rng=rng(0)).truth["words"]
    found = attention_by_topic(model, documents, 3, reference=reference, label_shift=shift)
    kinds: dict[str, list[float]] = {"same_word": [], "same_topic": [], "different": []}
    scores = model.scores().detach()
    for row in documents.tolist():
        tokens = [token for token in row if token < 13]
        pattern = scores[torch.tensor(tokens)][:, torch.tensor(tokens)].softmax(0)
        scale = 1.0 if reference is None else len(tokens) / reference
        for i, key in enumerate(tokens):
            for j, query in enumerate(tokens):
                topics = [(token - 1 + shift) // 3 for token in (key, query)]
                kind = "same_word" if key == query else "same_topic" if topics[0] == topics[1] else "different"
                kinds[kind].append(scale * float(pattern[i, j]))
    for name, values in kinds.items():
        assert getattr(found, name) == pytest.approx(np.mean(values), rel=1e-10)
    assert found.mean == pytest.approx(found.expected, rel=1e-10)


def test_prescribed_levels_are_read_back() -> None:
    model = value_topics(MaskedStatistics(4, 3, 2), alpha=3.0, beta=5.0)
    documents = LDATopics(topics=4, words=3, lengths=(400, 400), concentration=5.0).sample(50, rng=rng(1))
    found = attention_by_topic(model, documents.truth["words"], 3)
    alpha, beta = found.levels
    assert alpha == pytest.approx(3.0, rel=0.15) and beta == pytest.approx(5.0, rel=0.15)
    assert found.mean_level(3) == pytest.approx((2 * alpha + beta) / 3)


def test_pairs_of_published_documents_have_the_known_shares_and_mean() -> None:
    documents = LDATopics().sample(4000, rng=rng(2)).truth["words"]
    with seeded(0):
        model = OneLayerTopics(vocab=101, std=0.0)
    found = attention_by_topic(model, documents, 10)
    assert found.shares == pytest.approx((0.0624, 0.491, 0.446), abs=0.01)
    assert found.expected == pytest.approx(0.0078906, rel=5e-3)
    assert (found.same_word, found.different) == pytest.approx((0.00789, 0.00789), rel=0.02)
    debiased = attention_by_topic(model, documents, 10, reference=100.0)
    assert debiased.mean == pytest.approx(0.01, rel=1e-5)
    shifted = attention_by_topic(model, documents, 10, label_shift=4)
    assert shifted.shares[1:] == pytest.approx((0.250, 0.689), abs=0.01)


PRINTED = {
    "Adam, 0.003": (0.00759, 0.0108, 0.00689),
    "Adam, 0.01": (0.00811, 0.010, 0.00707),
    "Adam, 0.03": (0.00453, 0.0116, 0.00665),
    "SGD, 0.01": (0.0105, 0.0106, 0.00673),
    "SGD, 0.03": (0.0140, 0.0103, 0.00641),
}  # Table 2.1: same word, other word of the topic, other topics


def test_the_printed_averages_have_the_mean_of_attention_with_shifted_labels_only() -> None:
    documents = LDATopics().sample(4000, rng=rng(2)).truth["words"]
    with seeded(0):
        model = OneLayerTopics(vocab=101, std=0.0)
    true, shifted = (attention_by_topic(model, documents, 10, label_shift=shift) for shift in (0, 4))
    for name, row in PRINTED.items():
        assert 0.0085 < np.dot(true.shares, row) < 0.0090, name  # attention cannot average to that
        assert np.dot(shifted.shares, row) == pytest.approx(shifted.expected, rel=0.02), name


def test_the_order_of_the_caption_is_in_one_printed_row_and_topics_stand_out_in_all() -> None:
    ordered = [name for name, (word, topic, other) in PRINTED.items() if word > topic > other]
    assert ordered == ["SGD, 0.03"]
    assert all(topic > other for _, topic, other in PRINTED.values())
