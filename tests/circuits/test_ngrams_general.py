"""The additive construction equals the smoothed clamped estimator, in any basis."""

from __future__ import annotations

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.circuits.ngrams_general import additive_ngram_estimator
from sandlab.worlds.estimators import CountingEstimator
from sandlab.worlds.ngrams import InContextNgrams


@pytest.mark.parametrize(("states", "order"), [(3, 0), (3, 1), (2, 2), (3, 2), (5, 2), (2, 3), (2, 5), (5, 4)])
def test_output_is_the_clamped_estimator_with_epsilon_added(states, order):
    epsilon, length = 1e-3, 64
    tokens = InContextNgrams(states, 1, length, 1.0).sample(50, rng=rng(0)).inputs
    estimator = CountingEstimator.of_order(states, order, boundary="clamped")
    law = additive_ngram_estimator(states, order, length, smoothing=epsilon)(tokens)[:, -1].softmax(-1).detach()
    truth = (estimator.probabilities(tokens)[:, -1] + epsilon) / (1 + states * epsilon)
    matched = estimator.counts(tokens)[:, -1].sum(-1) > 0
    assert matched.any()
    assert float((law - truth)[matched].abs().max()) < 1e-12


def test_a_rotated_stream_computes_the_same_function():
    tokens = InContextNgrams(3, 1, 20, 1.0).sample(10, rng=rng(1)).inputs
    plain = additive_ngram_estimator(3, 2, 20, read="all")
    turned = additive_ngram_estimator(3, 2, 20, read="all", rotation=7)
    assert not torch.allclose(plain.embedding.weight, turned.embedding.weight)
    assert torch.allclose(plain(tokens), turned(tokens), atol=1e-9)


def test_smoothing_must_be_positive():
    with pytest.raises(BadInput, match="smoothing"):
        additive_ngram_estimator(3, 1, 10, smoothing=0.0)
