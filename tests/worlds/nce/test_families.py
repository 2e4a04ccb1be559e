"""Exponential families: every closed form against autograd, sums, quadrature and samples."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.worlds.nce.families import (
    BernoulliProduct,
    CategoricalFamily,
    DiagonalGaussian,
    GaussianMean,
    PoissonFamily,
)

CASES = [
    (GaussianMean(), [1.3]),
    (GaussianMean(3), [1.3, -0.4, 0.0]),
    (DiagonalGaussian(), [0.5, -0.7]),
    (DiagonalGaussian(2), [0.5, 2.0, -0.7, 0.3]),
    (BernoulliProduct(3), [0.4, -2.0, 1.0]),
    (PoissonFamily(), [0.9]),
    (CategoricalFamily(4), [0.3, -1.0, 0.8]),
]
SUMMABLE = [case for case in CASES if case[0] not in (GaussianMean(3), DiagonalGaussian(2))]


def theta_of(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(("family", "values"), CASES)
def test_mean_and_covariance_are_derivatives_of_the_log_partition_function(family, values):
    theta = theta_of(values)
    mean = torch.autograd.functional.jacobian(family.log_partition, theta)
    covariance = torch.autograd.functional.hessian(family.log_partition, theta)
    torch.testing.assert_close(family.mean(theta), mean)
    torch.testing.assert_close(family.covariance(theta), covariance)


@pytest.mark.parametrize(("family", "values"), CASES)
def test_samples_have_the_moments_of_the_closed_form(family, values):
    theta = theta_of(values)
    drawn = family.statistics(family.draw(200_000, theta, rng=sl.rng(1)))
    fisher = family.fisher(theta)
    products = drawn.unsqueeze(-1) * drawn.unsqueeze(-2)
    error = products.std(0) / math.sqrt(len(drawn))
    assert bool(((products.mean(0) - fisher).abs() <= 5 * error + 1e-12).all())


@pytest.mark.parametrize(("family", "values"), CASES)
def test_from_mean_inverts_mean_and_fit_is_maximum_likelihood(family, values):
    theta = theta_of(values)
    torch.testing.assert_close(family.from_mean(family.mean(theta)), theta)
    x = family.draw(500, theta, rng=sl.rng(2))
    fitted = family.fit(x)
    best = family.log_density(x, fitted).sum()
    for shift in (-0.01, 0.01):
        assert family.log_density(x, fitted + shift * fitted.abs().clamp(min=0.1)).sum() < best


@pytest.mark.parametrize(("family", "values"), SUMMABLE)
def test_densities_sum_to_one_over_the_nodes(family, values):
    theta = theta_of(values)
    x, log_weight = family.nodes(theta[None], theta[None], 2001)
    total = torch.logsumexp(family.log_density(x, theta) + log_weight, 0)
    assert abs(float(total)) < 1e-12


def test_densities_agree_with_scipy():
    x = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
    flat = x[:, 0].numpy()
    expected = {
        GaussianMean(): ([0.7], stats.norm(0.7).logpdf(flat)),
        DiagonalGaussian(): ([0.5, -0.7], stats.norm(-1.4, math.sqrt(2)).logpdf(flat)),
        PoissonFamily(): ([0.9], stats.poisson(math.exp(0.9)).logpmf(flat)),
    }
    for family, (theta, truth) in expected.items():
        torch.testing.assert_close(family.log_density(x, theta_of(theta)), torch.from_numpy(truth))


def test_kl_and_affinity_agree_with_numerical_integrals():
    family = DiagonalGaussian()
    first, second = family.natural(1.0, 2.0), family.natural(-0.5, 0.7)
    p, q = stats.norm(1.0, math.sqrt(2.0)), stats.norm(-0.5, math.sqrt(0.7))
    kl = integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -12, 12)[0]
    overlap = integrate.quad(lambda x: math.sqrt(p.pdf(x) * q.pdf(x)), -12, 12)[0]
    assert float(family.kl(first, second)) == pytest.approx(kl, abs=1e-8)
    assert float(family.log_affinity(first, second).exp()) == pytest.approx(overlap, abs=1e-8)


@pytest.mark.parametrize(("family", "values"), CASES)
def test_natural_and_ordinary_parameters_are_inverse_maps(family, values):
    ordinary = family.ordinary(theta_of(values))
    torch.testing.assert_close(family.natural(**ordinary), theta_of(values))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=2), st.lists(st.floats(-3, 3), min_size=2, max_size=2))
def test_affinity_is_between_zero_and_one_and_one_only_at_equality(first, second):
    family = CategoricalFamily(3)
    value = float(family.log_affinity(theta_of(first), theta_of(second)).exp())
    assert 0 < value <= 1 + 1e-12
    assert float(family.log_affinity(theta_of(first), theta_of(first))) == pytest.approx(0, abs=1e-12)


def test_bad_parameters_are_refused_in_one_sentence():
    with pytest.raises(BadInput, match=r"normalisable.*precisions and must be positive"):
        DiagonalGaussian(2).check([1.0, -0.5, 0.0, 0.0], "theta_star")
    with pytest.raises(BadInput, match=r"theta_star must be 4 numbers"):
        DiagonalGaussian(2).check([1.0, 1.0, 0.0], "theta_star")
    theta = DiagonalGaussian(16).natural(0.0, 1.0)
    with pytest.raises(BadInput, match=r"not feasible.*mode='sample'"):
        DiagonalGaussian(16).nodes(theta[None], theta[None], 100)
    with pytest.raises(BadInput, match="dimensions must be a whole number of at least 1"):
        GaussianMean(0)
