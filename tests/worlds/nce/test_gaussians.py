"""Worlds of data against noise: their oracle is Bayes' rule, their knobs do what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.worlds.nce.families import BernoulliProduct, DiagonalGaussian
from sandlab.worlds.nce.gaussians import DensityChasm, DiagonalGaussians, ExponentialContrast, GaussianMeans


def test_the_oracle_is_bayes_rule_of_the_two_normal_densities():
    world = GaussianMeans(distance=3.0)
    batch = world.sample(200, rng=sl.rng(0))
    x = batch.inputs[:, 0].double().numpy()
    p, q = stats.norm(3.0).pdf(x), stats.norm(0.0).pdf(x)
    np.testing.assert_allclose(world.oracle(batch).exp().numpy(), np.stack([q, p], 1) / (p + q)[:, None], rtol=1e-6)


def test_no_predictor_beats_the_oracle_and_labels_are_balanced():
    world = GaussianMeans(distance=2.0)
    batch = world.sample(100_000, rng=sl.rng(1))
    # 0.3563164 is the minimum of the population loss, computed by quadrature (see tests/learning/test_nce.py).
    assert world.optimal_loss(batch) == pytest.approx(0.3563164, abs=0.005)
    assert float(batch.targets.double().mean()) == pytest.approx(0.5, abs=0.01)
    shifted = torch.nn.functional.logsigmoid(
        torch.stack([-(batch.truth["log_ratio"] + 1), batch.truth["log_ratio"] + 1], 1)
    )
    assert float(sl.worlds.cross_entropy(shifted, batch)) > world.optimal_loss(batch)


def test_sixteen_dimensional_noise_is_at_the_known_distance_from_the_data():
    world = DiagonalGaussians()
    family = world.family
    gap = family.coordinates(world.theta_data) - family.coordinates(world.theta_noise)
    assert float(gap.norm()) == pytest.approx(17.87, abs=0.005)
    assert ((world.variances >= 6) & (world.variances <= 12)).all()
    data = family.draw(50_000, world.theta_data, rng=sl.rng(2))
    np.testing.assert_allclose(data.var(0).numpy(), world.variances, rtol=0.05)


@pytest.mark.parametrize("knob", ["mean", "scale"])
@pytest.mark.parametrize("dimensions", [1, 5])
@pytest.mark.parametrize("nats", [0.0, 0.3, 128.0])
def test_the_chasm_has_the_divergence_it_is_asked_for(knob, dimensions, nats):
    world = DensityChasm(nats=nats, knob=knob, dimensions=dimensions)
    assert world.kl() == pytest.approx(nats, rel=1e-9, abs=1e-9)


def test_the_mean_knob_at_128_nats_is_distance_16():
    assert DensityChasm(nats=128.0).setting == pytest.approx(16.0)
    assert GaussianMeans(16.0).kl() == pytest.approx(128.0)


def test_any_family_makes_a_world():
    world = ExponentialContrast(BernoulliProduct(2), (1.0, -1.0), (0.0, 0.0))
    batch = world.sample(50, rng=sl.rng(3))
    assert batch.inputs.shape == (50, 2) and world.outputs == 2
    ratio = world.log_ratio(torch.tensor([[1.0, 0.0]]))
    expected = 2 * math.log((1 / (1 + math.exp(-1))) / 0.5)
    assert float(ratio) == pytest.approx(expected)


def test_the_same_seed_gives_the_same_examples():
    world = DiagonalGaussians(dimensions=3)
    first, second = (world.sample(20, rng=sl.rng(4)) for _ in range(2))
    assert torch.equal(first.inputs, second.inputs) and torch.equal(first.targets, second.targets)


def test_bad_worlds_are_refused_in_one_sentence():
    with pytest.raises(BadInput, match="data must be 2 numbers"):
        ExponentialContrast(DiagonalGaussian(), (1.0,), (1.0, 0.0))
    with pytest.raises(BadInput, match="noise must be normalisable"):
        ExponentialContrast(DiagonalGaussian(), (1.0, 0.0), (-1.0, 0.0))
    with pytest.raises(BadInput, match="member must be an exponential family"):
        ExponentialContrast("gaussian", (1.0,), (0.0,))
    with pytest.raises(BadInput, match="distance must be a number of at least 0"):
        GaussianMeans(-1.0)
    with pytest.raises(BadInput, match="knob must be one of"):
        DensityChasm(knob="means")
    with pytest.raises(BadInput, match="n must be a whole number"):
        GaussianMeans().sample(0, rng=sl.rng(0))
