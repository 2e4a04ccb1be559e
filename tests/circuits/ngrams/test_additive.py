"""The additive construction equals the smoothed clamped estimator, in any basis."""

from __future__ import annotations

import math

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.circuits.ngrams.additive import additive_ngram_estimator
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams


@pytest.mark.parametrize("states", [2, 3, 4, 5])
@pytest.mark.parametrize("order", [0, 1, 2, 3, 4, 5])
def test_output_is_the_clamped_estimator_with_epsilon_added(states, order):
    epsilon, length = 1e-3, 64
    tokens = InContextNgrams(states, 1, length, 1.0).sample(50, rng=rng(0)).inputs
    estimator = CountingEstimator.of_order(states, order, boundary="clamped")
    probs = additive_ngram_estimator(states, order, length, smoothing=epsilon)(tokens)[:, -1].softmax(-1).detach()
    truth = (estimator.probabilities(tokens)[:, -1] + epsilon) / (1 + states * epsilon)
    matched = estimator.counts(tokens)[:, -1].sum(-1) > 0
    assert matched.any()
    assert float((probs - truth)[matched].abs().max()) < 1e-12


@pytest.mark.parametrize("order", [1, 2, 3])
def test_error_falls_with_the_temperature_as_in_the_simplified_model(order):
    epsilon, length, states = 1e-3, 64, 3
    tokens = InContextNgrams(states, 1, length, 1.0).sample(50, rng=rng(2)).inputs
    estimator = CountingEstimator.of_order(states, order, boundary="clamped")
    truth = (estimator.probabilities(tokens)[:, -1] + epsilon) / (1 + states * epsilon)
    matched = estimator.counts(tokens)[:, -1].sum(-1) > 0
    errors = []
    for c in (10.0, 15.0, 20.0):
        model = additive_ngram_estimator(states, order, length, temperature=c, smoothing=epsilon)
        errors.append(float((model(tokens)[:, -1].softmax(-1).detach() - truth)[matched].abs().max()))
        assert errors[-1] <= c * length * math.exp(-c)
    assert errors[1] < errors[0] * 0.02 and errors[2] < errors[1] * 0.02


def test_a_rotated_stream_computes_the_same_function():
    tokens = InContextNgrams(3, 1, 20, 1.0).sample(10, rng=rng(1)).inputs
    plain = additive_ngram_estimator(3, 2, 20, read="all")
    turned = additive_ngram_estimator(3, 2, 20, read="all", rotation=7)
    assert not torch.allclose(plain.embedding.weight, turned.embedding.weight)
    assert torch.allclose(plain(tokens), turned(tokens), atol=1e-9)


def test_smoothing_must_be_positive():
    with pytest.raises(BadInput, match="smoothing"):
        additive_ngram_estimator(3, 1, 10, smoothing=0.0)
