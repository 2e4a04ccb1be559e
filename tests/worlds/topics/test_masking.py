"""Token probabilities after masking, against an enumeration of what can happen to a word."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sandlab.errors import BadInput
from sandlab.random import rng
from sandlab.worlds.topics.documents import DisjointTopics
from sandlab.worlds.topics.masking import InfiniteDocuments, MaskedStatistics, topic_of_word


def enumerated(s: MaskedStatistics) -> np.ndarray:
    """Law of the shown token in a document on the first τ topics, by summing over true word and fate."""
    law, words = np.zeros(s.vocab), s.topics * s.words
    for true in range(1, s.present * s.words + 1):
        share = 1 / (s.present * s.words)
        law[true] += share * (1 - s.rate + s.rate * s.keep)
        law[1:] += share * s.rate * s.swap / words
        law[0] += share * s.rate * (1 - s.keep - s.swap)
    return law


@pytest.mark.parametrize(("topics", "words", "present"), [(10, 10, 2), (5, 4, 1), (3, 2, 3), (6, 3, 5)])
def test_shown_tokens_have_the_enumerated_law(topics: int, words: int, present: int) -> None:
    s = MaskedStatistics(topics, words, present, rate=0.3, keep=0.2, swap=0.25)
    law = enumerated(s)
    assert law[0] == pytest.approx(s.mask_mass, rel=1e-12)
    assert law[1] == pytest.approx(s.p_present, rel=1e-12)
    if present < topics:
        assert law[-1] == pytest.approx(s.p_absent, rel=1e-12)
    total = words * present * s.p_present + words * (topics - present) * s.p_absent + s.mask_mass
    assert total == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(s.masked(InfiniteDocuments(s).every())[0], law, rtol=1e-12)


def test_published_rates_give_the_known_constants() -> None:
    s = MaskedStatistics()
    assert s.mask_mass == pytest.approx(0.12, rel=1e-12)
    assert s.true_mass == pytest.approx(0.865, rel=1e-12)
    assert s.c3 == pytest.approx(1.1560693641618498, rel=1e-12)
    assert s.offset == pytest.approx(0.00017341040462427745, rel=1e-12)
    assert s.c2 == pytest.approx(22 / 3, rel=1e-12)


@pytest.mark.parametrize(
    ("topics", "words", "c1"),
    [(10, 10, 0.001445086705202312), (5, 4, 0.0072254335260115606), (100, 300, 4.8169556840077075e-06)],
)
def test_the_constants_of_the_optimum_have_the_known_digits(topics: int, words: int, c1: float) -> None:
    s = MaskedStatistics(topics, words)
    assert (s.c1, s.c2) == pytest.approx((c1, 7.333333333), rel=1e-9)
    # What a word of [MASK] takes back is what swapped words of absent topics add: c₁m = p_m p_r/(kTv).
    assert s.c1 * s.mask_mass == pytest.approx(s.offset, rel=1e-12)


def test_each_word_has_the_topic_that_owns_it_and_the_mask_has_none() -> None:
    assert topic_of_word(np.arange(13), 4).tolist() == [0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    np.testing.assert_array_equal(MaskedStatistics(3, 4, 1).topic_sums.sum(0), [0, *([1] * 12)])


def test_infinite_documents_are_all_sets_of_topics() -> None:
    s = MaskedStatistics(5, 4, 2)
    every = InfiniteDocuments(s).every()
    assert len(every) == 10 and len(np.unique(every, axis=0)) == 10
    np.testing.assert_allclose(every.sum(1), 1)
    for row, present in zip(every, itertools.combinations(range(1, 6), 2)):
        assert set(topic_of_word(np.flatnonzero(row), 4).tolist()) == set(present)


def test_sets_of_topics_can_be_drawn_where_there_are_too_many_to_list() -> None:
    """(100 choose 20) is 5·10²⁰: the weights of sampled documents give their exact frequencies."""
    s = MaskedStatistics(100, 3, 20)
    weights = DisjointTopics(topics=100, words=3, present=20).weights(50, rng(0)).numpy()
    found = InfiniteDocuments(s).weighted(weights)
    assert set(np.unique(found)) == {0.0, 1 / 60} and ((found > 0).sum(1) == 60).all()
    assert (found @ s.topic_sums.T > 0).sum(1).tolist() == [20] * 50 and len(np.unique(found, axis=0)) == 50


def test_dirichlet_documents_have_the_moments_of_the_weights() -> None:
    s = MaskedStatistics(10, 10, 2)
    every = InfiniteDocuments(s).dirichlet(40_000, 0.1, np.random.default_rng(0))
    weights = every @ s.topic_sums.T
    assert (weights**2).mean() == pytest.approx(0.055, abs=2e-3)
    assert (weights[:, 0] * weights[:, 1]).mean() == pytest.approx(0.005, abs=1e-3)


def test_shares_that_are_no_probabilities_are_refused() -> None:
    with pytest.raises(BadInput, match=r"keep \+ swap"):
        MaskedStatistics(keep=0.7, swap=0.6)
    with pytest.raises(BadInput, match="present"):
        MaskedStatistics(topics=3, present=4)
