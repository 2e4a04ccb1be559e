"""Constant-depth induction heads of order k equal the strict counting estimator."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.circuits.markov.korder import context_gap, korder_three_layers, korder_two_layers, with_start_token
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams

MAKERS = {"two": korder_two_layers, "three": korder_three_layers}


@pytest.mark.parametrize("base", [2.0, 3.0])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("states", [2, 3])
def test_gap_is_the_smallest_over_all_pairs_of_contexts(states, order, base):
    contexts = torch.tensor(list(itertools.product(range(states), repeat=order)))
    weights = base ** -torch.arange(order, dtype=torch.float64)
    vectors = (torch.nn.functional.one_hot(contexts, states) * weights.unsqueeze(-1)).sum(1)
    cosine = torch.nn.functional.cosine_similarity(vectors.unsqueeze(0), vectors.unsqueeze(1), dim=-1)
    cosine.fill_diagonal_(0)
    assert context_gap(order, base) == pytest.approx(1 - float(cosine.max()), abs=1e-12)


def test_gaps_have_the_known_values():
    assert [context_gap(k, 3.0) for k in (1, 2, 3, 4, 5)] == pytest.approx(
        [1, 5.13e-2, 3.45e-3, 3.29e-4, 3.47e-5], rel=2e-3
    )
    assert [context_gap(k, 2.0) for k in (2, 3, 4, 5)] == pytest.approx([1.06e-1, 1.36e-2, 2.54e-3, 5.55e-4], rel=5e-3)


@pytest.mark.parametrize("layers", MAKERS)
@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("states", [2, 3, 4, 5])
def test_construction_equals_the_strict_estimator(layers, order, states):
    length = 120
    tokens = InContextNgrams(states, 1, length, 1.0).sample(12, rng=rng(0)).inputs
    model = MAKERS[layers](states, order, length)
    assert len(model.layers) == {"two": 2, "three": 3}[layers]
    assert set(model.config.heads_per_layer) == {1}
    probs = model(with_start_token(tokens, states))[:, 1:].softmax(-1).detach()
    estimator = CountingEstimator.of_order(states, order)
    matched = estimator.counts(tokens).sum(-1) > 0
    assert matched.any()
    assert float((probs - estimator.probabilities(tokens))[matched].abs().max()) < 1e-6


@pytest.mark.parametrize("layers", MAKERS)
def test_every_short_sequence_gives_the_strict_estimator(layers):
    tokens = torch.tensor(list(itertools.product(range(2), repeat=8)))
    probs = MAKERS[layers](2, 2, 8)(with_start_token(tokens, 2))[:, -1].softmax(-1).detach()
    estimator = CountingEstimator.of_order(2, 2)
    matched = estimator.counts(tokens)[:, -1].sum(-1) > 0
    assert float((probs - estimator.probabilities(tokens)[:, -1])[matched].abs().max()) < 1e-6


@pytest.mark.parametrize("base", [2.0, 3.0])
def test_error_falls_with_the_sharpness(base):
    tokens = InContextNgrams(2, 1, 200, 1.0).sample(20, rng=rng(1)).inputs
    estimator = CountingEstimator.of_order(2, 3)
    truth, matched = estimator.probabilities(tokens)[:, -1], estimator.counts(tokens)[:, -1].sum(-1) > 0
    errors = []
    for sharpness in (1e2, 1e3, 1e4):
        model = korder_three_layers(2, 3, 200, base=base, sharpness=sharpness)
        probs = model(with_start_token(tokens, 2))[:, -1].softmax(-1).detach()
        errors.append(float((probs - truth)[matched].abs().max()))
    assert errors[0] > 1e-3 and errors[1] < 0.1 * errors[0] and errors[2] < 1e-7


@pytest.mark.parametrize("layers", MAKERS)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_error_stays_below_what_the_smallest_angle_predicts(layers, order):
    """Every wrong key has at most e^{−κ · gap} times the weight of a right one."""
    length = 100
    tokens = InContextNgrams(3, 1, length, 1.0).sample(30, rng=rng(2)).inputs
    estimator = CountingEstimator.of_order(3, order)
    truth, matched = estimator.probabilities(tokens)[:, -1], estimator.counts(tokens)[:, -1].sum(-1) > 0
    errors = []
    for exponent in (4.0, 8.0, 12.0):
        model = MAKERS[layers](3, order, length, sharpness=exponent / context_gap(order, 3.0))
        probs = model(with_start_token(tokens, 3))[:, -1].softmax(-1).detach()
        errors.append(float((probs - truth)[matched].abs().max()))
        assert errors[-1] < length * math.exp(-exponent)
    assert errors[2] < 0.1 * errors[1] < 0.1 * errors[0]


def test_impossible_constructions_are_refused():
    with pytest.raises(BadInput, match="order"):
        korder_three_layers(3, 0, 10)
    with pytest.raises(BadInput, match="base"):
        korder_two_layers(3, 2, 10, base=1.0)
    with pytest.raises(BadInput, match="length"):
        korder_two_layers(3, 5, 4)
