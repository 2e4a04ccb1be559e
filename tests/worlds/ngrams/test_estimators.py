"""Counting estimators against counting by hand."""

from __future__ import annotations

import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sandlab import BadInput, rng
from sandlab.worlds.ngrams.estimators import CountingEstimator, naming, ngram_estimators, ngram_name


def counted_by_hand(tokens: list[int], states: int, lags: tuple[int, ...], boundary: str, count_self: bool) -> list:
    """N_a at every position, straight from the definition."""
    rows = []
    for t in range(len(tokens)):
        counts = [0] * states
        for at in range(t + 1):
            whole = boundary == "clamped" or (at >= max(lags, default=0) and t + 1 >= max(lags, default=0))
            same = all(tokens[max(at - h, 0)] == tokens[max(t + 1 - h, 0)] for h in lags)
            if (whole and same) or (count_self and at == t):
                counts[tokens[at]] += 1
        rows.append(counts)
    return rows


@settings(max_examples=80, deadline=None)
@given(
    tokens=st.lists(st.integers(0, 2), min_size=1, max_size=14),
    lags=st.sets(st.integers(1, 4), max_size=3),
    boundary=st.sampled_from(["strict", "clamped"]),
    count_self=st.booleans(),
)
def test_counts_equal_counting_by_hand(tokens, lags, boundary, count_self):
    estimator = CountingEstimator(3, tuple(lags), boundary=boundary, count_self=count_self)
    counts = estimator.counts(torch.tensor([tokens, tokens]))
    by_hand = torch.tensor(counted_by_hand(tokens, 3, estimator.lags, boundary, count_self), dtype=torch.float64)
    assert torch.equal(counts[0], by_hand)
    assert torch.equal(counts[1], by_hand)
    assert torch.equal(estimator.last_counts(torch.tensor([tokens, tokens])), by_hand[-1:].expand(2, -1))


def test_smoothing_adds_a_constant_to_every_count():
    tokens = torch.tensor([[0, 1, 0, 1, 0, 0]])
    plain = CountingEstimator(3, (1,)).probabilities(tokens)[0, -1]
    smooth = CountingEstimator(3, (1,), smoothing=0.5).probabilities(tokens)[0, -1]
    # After a 0 came 1, 1 and 0.
    assert plain.tolist() == pytest.approx([1 / 3, 2 / 3, 0])
    assert smooth.tolist() == pytest.approx([1.5 / 4.5, 2.5 / 4.5, 0.5 / 4.5])


def test_unigram_counts_every_token_and_no_match_gives_the_uniform_distribution():
    tokens = torch.tensor([[2, 2, 1]])
    assert CountingEstimator(3, ()).probabilities(tokens)[0, -1].tolist() == pytest.approx([0, 1 / 3, 2 / 3])
    assert CountingEstimator(3, (1,)).probabilities(tokens)[0, -1].tolist() == pytest.approx([1 / 3] * 3)


def test_names_follow_the_order():
    assert list(ngram_estimators(3, 4, 1.0)) == ["uniform", "unigram", "bigram", "trigram", "4-gram", "5-gram"]
    assert CountingEstimator(3, (3, 1)).name == "lags {1,3}"
    assert CountingEstimator.of_order(3, 2).name == ngram_name(2) == "trigram"
    assert naming(2) == "order 2: trigram (n = 3, windows of 3), or 2-gram by previous tokens"
    assert "no previous token" in naming(0)


def test_half_a_million_positions_take_seconds():
    """0.1 s on a quiet machine; a loop over positions takes minutes."""
    tokens = torch.randint(0, 5, (4096, 128), generator=rng(0))
    estimator = CountingEstimator.of_order(5, 3, 1.0)
    estimator(tokens[:8])
    start = time.process_time()
    estimator(tokens)
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"states": 0}, "states"),
        ({"states": 3, "lags": (0,)}, "lag"),
        ({"states": 3, "smoothing": -1.0}, "smoothing"),
        ({"states": 3, "boundary": "clamp"}, "boundary"),
        ({"states": 5, "lags": tuple(range(1, 40))}, "states"),
    ],
)
def test_impossible_estimators_are_refused_by_name(options, named):
    with pytest.raises(BadInput, match=named):
        CountingEstimator(**options)
