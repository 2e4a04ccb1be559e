"""Contrastive losses: formulas against finite differences, scipy integrals, samples, and known values."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.nce.losses import MARGIN_LOSSES, Stabiliser, log_mean_exp, margin_loss, shifted_mean
from sandlab.learning.nce.problem import NCEProblem
from sandlab.worlds.nce.families import (
    BernoulliProduct,
    CategoricalFamily,
    DiagonalGaussian,
    GaussianMean,
    PoissonFamily,
)
from sandlab.worlds.nce.gaussians import DiagonalGaussians, GaussianMeans

PROBLEMS = [
    NCEProblem(GaussianMean(), (2.5,), (0.0,)),
    NCEProblem(DiagonalGaussian(), (0.4, 0.3), (1.0, 0.0)),
    NCEProblem(BernoulliProduct(3), (1.0, -2.0, 0.5), (0.0, 0.0, 0.0)),
    NCEProblem(PoissonFamily(), (1.5,), (0.2,)),
    NCEProblem(CategoricalFamily(4), (1.0, 0.2, -1.0), (0.0, 0.0, 0.0)),
]

# R, minimum of the NCE loss, the same over exp(−R²/8), condition numbers of NCE and eNCE at the optimum.
TABLE = [
    (0.5, 6.628359e-01, 0.68388, 1.6638, 1.6466),
    (1, 5.817257e-01, 0.65918, 2.8704, 2.6909),
    (2, 3.563164e-01, 0.58747, 9.2423, 6.8541),
    (3, 1.663699e-01, 0.51246, 29.649, 16),
    (4, 6.042699e-02, 0.44650, 87.496, 33.971),
    (5, 1.720460e-02, 0.39157, 231.78, 66.047),
    (6, 3.849248e-03, 0.34650, 553.09, 118.99),
    (8, 9.353508e-05, 0.27882, 2424.6, 322),
    (10, 8.631660e-07, 0.23162, 8151, 727),
    (12, 3.005771e-09, 0.19736, 22632, 1442),
    (16, 1.919388e-15, 0.15156, 1.1788e5, 4354),
]


def gaussian(distance: float) -> NCEProblem:
    return NCEProblem.of(GaussianMeans(float(distance)))


def nearby(problem: NCEProblem, count: int, scale: float, seed: int) -> torch.Tensor:
    noise = torch.randn(count, len(problem.tau_star), generator=sl.rng(seed), dtype=torch.float64)
    return problem.tau_star + scale * noise


@pytest.mark.parametrize("kind", ["nce", "ence"])
@pytest.mark.parametrize("distance", [1, 3, 6])
def test_gradient_and_hessian_are_the_finite_differences_of_the_loss(kind, distance):
    problem = gaussian(distance)
    tau, step = nearby(problem, 20, 0.5, distance), 1e-5
    for index in range(2):
        shift = torch.zeros(2, dtype=torch.float64)
        shift[index] = step
        slope = (problem.loss(tau + shift, kind) - problem.loss(tau - shift, kind)) / (2 * step)
        size = problem.loss(tau, kind)  # rounding of the quotient is relative to the loss
        assert bool(((slope - problem.grad(tau, kind)[:, index]).abs() <= 1e-5 * size).all())
        bend = (problem.grad(tau + shift, kind) - problem.grad(tau - shift, kind)) / (2 * step)
        truth = problem.hess(tau, kind)[..., index]
        assert bool(((bend - truth).abs() <= 1e-5 * truth.abs().amax(-1, keepdim=True)).all())


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem.family).__name__)
def test_closed_form_of_the_exponential_loss_is_the_sum_over_x(problem):
    tau = nearby(problem, 10, 0.1, 0)
    closed, summed = problem.population("ence"), problem.quadrature("ence")
    torch.testing.assert_close(closed.log_loss(tau), summed.log_loss(tau), rtol=1e-10, atol=1e-10)
    for name in ("gradient", "hessian"):
        torch.testing.assert_close(
            getattr(closed, name)(tau).value, getattr(summed, name)(tau).value, rtol=1e-8, atol=1e-10
        )


def test_losses_agree_with_adaptive_integrals():
    problem, p, q = gaussian(2), stats.norm(2.0), stats.norm(0.0)
    b, c = 1.1, 1.7
    ratio = lambda x: b * x - c + 0.5 * math.log(2 * math.pi)  # noqa: E731
    parts = [
        integrate.quad(lambda x: p.pdf(x) * np.logaddexp(0, -ratio(x)), -15, 20, epsabs=1e-13)[0],
        integrate.quad(lambda x: q.pdf(x) * np.logaddexp(0, ratio(x)), -15, 20, epsabs=1e-13)[0],
    ]
    assert float(problem.loss([b, c])) == pytest.approx(sum(parts) / 2, rel=1e-10)


@pytest.mark.parametrize("kind", ["nce", "ence"])
def test_sample_gradients_average_to_the_population_gradient(kind):
    problem = gaussian(1)
    tau = torch.tensor([0.6, 1.3], dtype=torch.float64)
    parts = torch.stack([problem.grad(tau, kind, "sample", n=50_000, rng=sl.rng(seed)) for seed in range(20)])
    error = parts.std(0) / math.sqrt(len(parts))
    assert bool(((parts.mean(0) - problem.grad(tau, kind)).abs() <= 4 * error).all())


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem.family).__name__)
@pytest.mark.parametrize("kind", ["nce", "ence"])
def test_losses_are_convex_and_minimal_only_at_the_truth(problem, kind):
    tau = nearby(problem, 30, 0.1, 1)
    assert bool((problem.loss(tau, kind) > problem.loss(problem.tau_star, kind)).all())
    assert bool((torch.linalg.eigvalsh(problem.hess(tau, kind)) >= -1e-12).all())
    assert float(problem.grad(problem.tau_star, kind).norm()) < 1e-12


@pytest.mark.parametrize(("distance", "least", "share", "kappa", "kappa_exponential"), TABLE)
def test_known_values_of_gaussian_means(distance, least, share, kappa, kappa_exponential):
    problem = gaussian(distance)
    assert float(problem.loss(problem.tau_star)) == pytest.approx(least, rel=1e-6)
    assert float(problem.loss(problem.tau_star)) / problem.bc() == pytest.approx(share, rel=1e-4)
    for kind, truth in (("nce", kappa), ("ence", kappa_exponential)):
        values = torch.linalg.eigvalsh(problem.population(kind).hessian(problem.tau_star).mantissa)
        assert float(values[1] / values[0]) == pytest.approx(truth, rel=1e-4)
    assert float(problem.loss(problem.tau_q)) == pytest.approx(math.log(2), abs=1e-9)
    assert float(problem.loss(problem.tau_q, "ence")) == pytest.approx(1.0, abs=1e-12)
    assert float(problem.loss(problem.tau_star, "ence")) == pytest.approx(math.exp(-(distance**2) / 8), rel=1e-10)


def test_truth_and_noise_have_the_documented_coordinates():
    problem = gaussian(16)
    root = 0.9189385332
    assert problem.tau_q.tolist() == pytest.approx([0, root])
    assert problem.tau_star.tolist() == pytest.approx([16, 128 + root])  # printed once with the opposite sign
    assert float(problem.distance(problem.tau_q)) == pytest.approx(128.996, abs=1e-3)
    assert problem.kl() == pytest.approx(128) and problem.bc() == pytest.approx(math.exp(-32))


def test_nothing_overflows_or_warns_up_to_distance_forty():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for distance in (0.1, 1, 16, 25, 40):
            problem = gaussian(distance)
            grid = torch.stack([problem.tau_q, problem.tau_star, 2 * problem.tau_star, -problem.tau_star])
            for kind in ("nce", "ence"):
                objective = problem.population(kind)
                assert bool(torch.isfinite(objective.log_loss(grid)).all())
                gradient, hessian = objective.gradient(grid), objective.hessian(grid)
                assert bool(torch.isfinite(gradient.direction).all()) and bool(torch.isfinite(hessian.mantissa).all())
                sampled = problem.sample(kind, n=100, rng=sl.rng(0))
                assert bool(torch.isfinite(sampled.gradient(grid).direction).all())


def test_directions_are_exact_where_the_gradient_underflows():
    problem = gaussian(120)
    tau = problem.tau_star + torch.tensor([-0.5, 3.0], dtype=torch.float64)
    gradient = problem.population().gradient(tau)
    assert bool((gradient.value == 0).all())  # e^(−1800) is no float64
    assert float(gradient.direction.norm()) == pytest.approx(1.0)
    assert float(gradient.log_norm) < -1000


def test_ence_is_infinite_where_its_densities_cannot_be_normalised():
    problem = NCEProblem.of(DiagonalGaussians(dimensions=2))
    outside = problem.tau_q.clone()
    outside[0] = -1.5  # precision a with a + a_q < 0
    assert float(problem.loss(outside, "ence")) == math.inf


def test_margin_losses_match_their_formulas_and_derivatives():
    m = torch.linspace(-30, 30, 61, dtype=torch.float64, requires_grad=True)
    for name, plain in (("nce", lambda m: torch.log1p(torch.exp(-m))), ("ence", lambda m: torch.exp(-m / 2))):
        loss = MARGIN_LOSSES[name]
        torch.testing.assert_close(loss.log_value(m), plain(m).log(), rtol=1e-9, atol=1e-4)
        first = torch.autograd.grad(plain(m).sum(), m, create_graph=True)[0]
        second = torch.autograd.grad(first.sum(), m)[0]
        torch.testing.assert_close(loss.log_slope(m).exp(), -first, rtol=1e-9, atol=1e-13)
        torch.testing.assert_close(loss.log_curvature(m).exp(), second, rtol=1e-7, atol=1e-13)
    assert float(MARGIN_LOSSES["nce"].log_value(torch.tensor(900.0, dtype=torch.float64))) == -900


def test_shifted_mean_survives_values_whose_sum_overflows():
    values = torch.full((10,), 1e308, dtype=torch.float64)
    assert math.isinf(float(values.sum()))
    assert float(shifted_mean(values)) == pytest.approx(1e308)
    small = torch.randn(7, 5, generator=sl.rng(0), dtype=torch.float64)
    torch.testing.assert_close(shifted_mean(small), small.mean(-1))
    torch.testing.assert_close(log_mean_exp(small + 900), small.exp().mean(-1).log() + 900)


def test_gradient_clipping_limits_each_sample():
    problem = gaussian(4)
    tau = torch.tensor([3.0, 9.0], dtype=torch.float64)
    data, noise = (problem.family.draw(50, theta, rng=sl.rng(5)) for theta in (problem.theta_data, problem.theta_noise))
    limit = 0.3
    clipped = problem.on(data, noise, "ence", Stabiliser(clip_gradient=limit)).gradient(tau).value
    expected = torch.zeros(2, dtype=torch.float64)
    for x, sign in ((data, 1.0), (noise, -1.0)):
        statistics = problem.family.statistics(x)
        weight = 0.5 * torch.exp(-sign * (statistics @ (tau - problem.tau_q)) / 2)
        each = -sign * weight.unsqueeze(-1) * statistics
        each = each * torch.clamp(limit / each.norm(dim=-1, keepdim=True), max=1.0)
        expected = expected + each.mean(0) / 2
    torch.testing.assert_close(clipped, expected)


def test_ratio_clipping_removes_the_gradient_of_clamped_samples():
    problem = gaussian(4)
    tau = problem.tau_star
    data, noise = (problem.family.draw(80, theta, rng=sl.rng(6)) for theta in (problem.theta_data, problem.theta_noise))
    weight = torch.zeros((), dtype=torch.float64, requires_grad=True)
    limit = 2.0
    free = tau.clone().requires_grad_(True)
    total = weight * 0
    for x, sign in ((data, 1.0), (noise, -1.0)):
        ratio = (problem.family.statistics(x) @ (free - problem.tau_q)).clamp(-limit, limit)
        total = total + torch.nn.functional.softplus(-sign * ratio).mean() / 2
    total.backward()
    objective = problem.on(data, noise, "nce", Stabiliser(clip_ratio=limit))
    torch.testing.assert_close(objective.gradient(tau).value, free.grad)
    assert float(objective.log_loss(tau).exp()) == pytest.approx(float(total.detach()))


def test_sample_forms_are_plain_averages():
    problem = gaussian(2)
    data, noise = (
        problem.family.draw(200, theta, rng=sl.rng(7)) for theta in (problem.theta_data, problem.theta_noise)
    )
    tau = torch.tensor([1.5, 2.0], dtype=torch.float64)
    ratios = [problem.family.statistics(x) @ (tau - problem.tau_q) for x in (data, noise)]
    expected = 0.5 * np.logaddexp(0, -ratios[0]).mean() + 0.5 * np.logaddexp(0, ratios[1]).mean()
    assert float(problem.on(data, noise).log_loss(tau).exp()) == pytest.approx(float(expected))
    push = -0.5 * special.expit(-ratios[0]) @ problem.family.statistics(data) / 200
    pull = 0.5 * special.expit(ratios[1]) @ problem.family.statistics(noise) / 200
    np.testing.assert_allclose(problem.on(data, noise).gradient(tau).value, push + pull)


def test_bad_problems_are_refused_in_one_sentence():
    with pytest.raises(BadInput, match="theta_star must be 1 numbers"):
        NCEProblem(GaussianMean(), (1.0, 2.0), (0.0,))
    with pytest.raises(BadInput, match="theta_q must be normalisable"):
        NCEProblem(DiagonalGaussian(), (1.0, 0.0), (0.0, 0.0))
    with pytest.raises(BadInput, match="tau must end in an axis of 2 coordinates"):
        gaussian(2).loss(torch.zeros(3))
    with pytest.raises(BadInput, match="kind must be one of 'nce', 'ence'"):
        margin_loss("infonce")
    with pytest.raises(BadInput, match="give it rng"):
        gaussian(2).loss(torch.zeros(2), mode="sample")
    with pytest.raises(BadInput, match="data must have shape"):
        gaussian(2).on(torch.zeros(5), torch.zeros(5, 1))
    problem = NCEProblem.of(DiagonalGaussians())
    with pytest.raises(BadInput, match="not feasible"):
        problem.loss(problem.tau_q)
    with pytest.raises(BadInput, match="clip_ratio must be a positive number"):
        Stabiliser(clip_ratio=-1.0)
