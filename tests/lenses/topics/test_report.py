"""The report of an encoder against loops over pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from sandlab.lenses.topics.report import cosines, listed_pairs, pair_attention, topic_pairs, topic_report
from sandlab.models.base import seeded
from sandlab.models.topics.encoder import MaskedEncoder

LAW = np.array([[0, 0.5, 0.3, 0.2, 0, 0, 0, 0], [0, 0, 0, 0.1, 0.4, 0.5, 0, 0], [0, 0, 0, 0, 0, 0, 0.9, 0.1]])


class Made:
    """Embeddings and attention that are known."""

    def __init__(self) -> None:
        draws = np.random.default_rng(0)
        self.vectors, self.scores = draws.normal(size=(8, 4)), draws.random((8, 8))

    def table(self) -> torch.Tensor:
        return torch.from_numpy(self.vectors)

    def mean_attention(self, tokens: torch.Tensor) -> torch.Tensor:
        scores = torch.from_numpy(self.scores)[tokens[:, :, None], tokens[:, None]]
        return scores / scores.sum(-1, keepdim=True)


def test_ratios_are_those_of_a_loop_over_different_words() -> None:
    encoder = Made()
    documents = [np.array([1, 2, 4, 1, 7, 6]), np.array([3, 5, 0, 2])]
    found = topic_report(encoder, documents, LAW, 0.25)
    topic = {1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 2, 7: 2}  # word 3 is likelier in topic 0
    dots: dict[bool, list[float]] = {True: [], False: []}
    for a, b in itertools.permutations(topic, 2):
        dots[topic[a] == topic[b]].append(float(encoder.vectors[a] @ encoder.vectors[b]))
    assert found.dot == pytest.approx({"same": np.mean(dots[True]), "different": np.mean(dots[False])})
    given: dict[bool, list[float]] = {True: [], False: []}
    for document in documents:
        attention = encoder.mean_attention(torch.from_numpy(document)[None])[0].numpy() * len(document) / 100
        for i, j in itertools.product(range(len(document)), repeat=2):
            a, b = int(document[i]), int(document[j])
            if a != b and a in topic and b in topic:
                given[topic[a] == topic[b]].append(attention[i, j])
    assert found.attention == pytest.approx({"same": np.mean(given[True]), "different": np.mean(given[False])})
    assert found.ratio("dot") == pytest.approx(np.mean(dots[True]) / np.mean(dots[False])) and found.words == 7


def test_a_common_topic_is_enough_when_words_may_have_several() -> None:
    member = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=bool)
    pairs = topic_pairs(member)
    assert pairs.words.tolist() == [0, 1, 2]
    assert pairs.kinds["same"].tolist() == [[False, True, True], [True, False, False], [True, False, False]]
    assert pairs.kinds["different"].tolist() == [[False, False, False], [False, False, True], [False, True, False]]


def test_listed_pairs_count_in_both_orders() -> None:
    encoder, pairs = Made(), listed_pairs("often", np.array([[5, 1], [1, 2]]))
    assert pairs.kinds["often"].sum() == 4 and pairs.words.tolist() == [1, 2, 5]
    document = np.array([1, 5, 3])
    attention = encoder.mean_attention(torch.from_numpy(document)[None])[0].numpy()
    (found,) = pair_attention(encoder, [document], [pairs], 8, reference=None)
    assert found["often"] == pytest.approx((attention[0, 1] + attention[1, 0]) / 2)


def test_an_untrained_encoder_attends_alike_within_and_between_topics() -> None:
    with seeded(0):
        encoder = MaskedEncoder(vocab=8, length=30, layers=2, heads=2, width=16)
    documents = list(np.random.default_rng(0).integers(1, 8, size=(40, 30)))
    found = topic_report(encoder, documents, LAW, 0.25)
    assert found.ratio("attention") == pytest.approx(1, abs=0.02)


def test_ratios_of_random_embeddings_are_one_only_when_these_share_a_mean() -> None:
    """Table 2.3 prints 1.000 for Bert with random weights; embeddings drawn around zero have no such quotient."""
    member = np.repeat(np.eye(20, dtype=bool), 15, axis=0)
    pairs = topic_pairs(member)
    around_zero, shared = [], []
    for seed in range(6):
        draws = np.random.default_rng(seed)
        vectors, offset = 0.02 * draws.normal(size=(300, 768)), 0.02 * draws.normal(size=768)
        plain, moved = pairs.means(cosines(vectors)), pairs.means(cosines(vectors + offset))
        assert max(abs(plain["same"]), abs(plain["different"])) < 0.005
        around_zero.append(plain["same"] / plain["different"])
        shared.append(moved["same"] / moved["different"])
    assert np.abs(np.array(shared) - 1).max() < 0.005
    assert np.ptp(around_zero) > 2
