"""The two-layer induction head equals the clamped order-1 estimator at every position."""

from __future__ import annotations

import pytest
import torch

from sandlab import rng
from sandlab.circuits.markov.induction import induction_head
from sandlab.worlds.ngrams.estimators import CountingEstimator


@pytest.mark.parametrize(("states", "length"), [(2, 10), (3, 64), (4, 100), (5, 200)])
def test_output_is_what_followed_the_present_token(states, length):
    tokens = torch.randint(0, states, (20, length), generator=rng(0))
    estimator = CountingEstimator(states, (1,), boundary="clamped")
    probs = induction_head(states, length)(tokens).softmax(-1).detach()
    matched = estimator.counts(tokens).sum(-1) > 0
    assert float((probs - estimator.probabilities(tokens))[matched].abs().max()) < 1e-6


def test_width_does_not_depend_on_the_length_and_weights_need_logarithmically_many_bits():
    short, long = induction_head(3, 16), induction_head(3, 256)
    assert short.config.width == long.config.width == 11
    for part in ("query", "key"):
        weights = [getattr(model.layers[0].attention, part).weight.detach() for model in (short, long)]
        assert float(weights[1].abs().max() / weights[0].abs().max()) == pytest.approx(256 / 16, rel=0.01)


def test_error_falls_exponentially_with_the_temperature():
    tokens = torch.randint(0, 3, (20, 32), generator=rng(1))
    estimator = CountingEstimator(3, (1,), boundary="clamped")
    truth = estimator.probabilities(tokens)[:, -1]
    errors = [
        float((induction_head(3, 32, temperature=c)(tokens)[:, -1].softmax(-1) - truth).detach().abs().max())
        for c in (6.0, 12.0, 24.0)
    ]
    assert errors[1] < 0.05 * errors[0] and errors[2] < 1e-3 * errors[1]
