"""Curvature and overlap of contrastive losses; what the source prints and what is true."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from sandlab.errors import BadInput
from sandlab.learning.nce.problem import NCEProblem
from sandlab.lenses.nce.constants import (
    bhattacharyya,
    condition_number,
    fisher_constants,
    hessian_neighbourhood,
    nce_spectrum,
)
from sandlab.worlds.nce.families import (
    BernoulliProduct,
    CategoricalFamily,
    DiagonalGaussian,
    GaussianMean,
    PoissonFamily,
)
from sandlab.worlds.nce.gaussians import DiagonalGaussians, GaussianMeans

# R, σ_max(H*)/e^(−R²/8), σ_min(H*)/e^(−R²/8)
SPECTRA = [
    (0.5, 0.30422, 1.828474e-01),
    (1, 0.34701, 1.208901e-01),
    (2, 0.43341, 4.689466e-02),
    (3, 0.54022, 1.822063e-02),
    (4, 0.66598, 7.611542e-03),
    (5, 0.80421, 3.469734e-03),
    (6, 0.94992, 1.717460e-03),
    (8, 1.25266, 5.166423e-04),
    (10, 1.56206, 1.916392e-04),
    (12, 1.87397, 8.280158e-05),
    (16, 2.50028, 2.121033e-05),
]


def gaussian(distance: float) -> NCEProblem:
    return NCEProblem.of(GaussianMeans(float(distance)))


@pytest.mark.parametrize(("distance", "largest", "smallest"), SPECTRA)
def test_curvature_at_the_optimum_has_the_known_values(distance, largest, smallest):
    logs = nce_spectrum(gaussian(distance)) + distance**2 / 8
    assert logs.exp().tolist() == pytest.approx([smallest, largest], rel=1e-4)


def test_smallest_curvature_falls_like_the_fifth_power_not_like_the_first():
    """Printed: σ_min(H*) = Θ(e^(−R²/8)/R). True: 2π³/√(2π)·R^(−5)·e^(−R²/8)."""
    limit = 2 * math.pi**3 / math.sqrt(2 * math.pi)
    distances = np.array([8.0, 10, 12, 16, 24, 32, 40])
    logs = np.array([float(nce_spectrum(gaussian(distance))[0]) for distance in distances]) + distances**2 / 8
    scaled = distances**5 * np.exp(logs)
    assert (np.diff(scaled) > 0).all() and scaled[-1] < limit
    assert scaled[distances == 16] == pytest.approx(22.24, abs=0.01)
    assert scaled[-1] == pytest.approx(limit, rel=0.03)
    assert (distances * np.exp(logs))[-1] < 1e-4  # the printed rate would keep this product of order one


def test_largest_curvature_keeps_its_bound_from_distance_one_and_has_a_known_asymptote():
    """Printed: σ_max(H*) ≤ R/√(2π)·e^(−R²/8); false at R = 0.5. Asymptote: (πR/8)/√(2π)·e^(−R²/8)."""
    for distance in (0.5, 1, 2, 5, 10, 16, 40):
        scaled = math.exp(float(nce_spectrum(gaussian(distance))[-1]) + distance**2 / 8)
        assert (scaled <= distance / math.sqrt(2 * math.pi)) == (distance >= 1)
    assert scaled == pytest.approx(math.pi * 40 / 8 / math.sqrt(2 * math.pi), rel=0.01)


def test_condition_number_of_nce_grows_like_the_sixth_power():
    """Follows from the corrected rate; the printed one gives O(R²). κ ≈ R⁶/(16π²)."""
    ratios = [condition_number(gaussian(distance)) * 16 * math.pi**2 / distance**6 for distance in (8, 16, 40)]
    assert ratios[1] == pytest.approx(1.11, abs=0.01)
    assert ratios[0] > ratios[1] > ratios[2] > 1 and ratios[2] < 1.03


def test_minimal_loss_falls_below_the_printed_constants():
    """Printed: L* = c·e^(−R²/8) with c in [½, 2]. True: c → √(2π)/R, below ½ from R ≈ 3.1 on."""
    constants = {}
    for distance in (1, 3, 3.2, 10, 16):
        problem = gaussian(distance)
        constants[distance] = float(problem.population().log_loss(problem.tau_star) + distance**2 / 8)
    share = {distance: math.exp(value) for distance, value in constants.items()}
    assert share[1] > 0.5 and share[3] > 0.5 and share[3.2] < 0.5
    assert abs(share[10] * 10 / math.sqrt(2 * math.pi) - 1) < 0.08
    assert abs(share[16] * 16 / math.sqrt(2 * math.pi) - 1) < 0.04


def test_loss_near_the_optimum_is_the_quadratic_of_the_hessian():
    for distance in (1, 4, 8, 16):
        problem = gaussian(distance)
        values, vectors = torch.linalg.eigh(problem.population().hessian(problem.tau_star).mantissa)
        largest = math.exp(float(nce_spectrum(problem)[-1]))
        small = 0.1 / distance
        angle = torch.linspace(0, 2 * math.pi, 50, dtype=torch.float64)
        ring = problem.tau_star + small * torch.stack([angle.cos(), angle.sin()], -1)
        rise = problem.loss(ring) - problem.loss(problem.tau_star)
        assert float(rise.max()) <= 0.5 * largest * small**2 * 1.05
        small = 0.02 / distance
        along = problem.loss(problem.tau_star + small * vectors[:, -1]) - problem.loss(problem.tau_star)
        assert float(along) == pytest.approx(0.5 * largest * small**2, rel=0.02)
        assert float(values[0]) > 0


@pytest.mark.parametrize("distance", [1, 4, 16])
def test_hessian_at_the_noise_has_off_diagonal_entries(distance):
    """Printed: diagonal, with σ_max ≥ R²/2. True: ⅛[[R²+2, −R], [−R, 2]], so σ_max ≥ (R²+2)/8 only."""
    problem = gaussian(distance)
    truth = torch.tensor([[distance**2 + 2, -distance], [-distance, 2]], dtype=torch.float64) / 8
    torch.testing.assert_close(problem.hess(problem.tau_q), truth, rtol=1e-9, atol=1e-12)
    largest = float(torch.linalg.eigvalsh(truth)[-1])
    assert (distance**2 + 2) / 8 <= largest
    assert (largest >= distance**2 / 2) == (distance == 1 and largest >= 0.5)
    assert float(problem.grad(problem.tau_q).norm()) == pytest.approx(distance / 4)


@pytest.mark.parametrize("distance", [0.5, 1, 3, 10, 40])
def test_ence_condition_number_is_that_of_the_fisher_matrix_midway(distance):
    t = distance**2 / 4 + 2
    exact = ((t + math.sqrt(t**2 - 4)) / 2) ** 2
    problem = gaussian(distance)
    assert condition_number(problem, "ence") == pytest.approx(exact, rel=1e-7 if distance > 10 else 1e-9)
    assert condition_number(problem, "ence") <= fisher_constants(problem).ratio


def test_fisher_constants_of_gaussian_means_have_closed_forms():
    for distance in (1.0, 4.0, 8.0):
        constants = fisher_constants(gaussian(distance))
        t = distance**2 + 2
        root = (t + math.sqrt(t**2 - 4)) / 2
        assert constants.largest == pytest.approx(root) and constants.smallest == pytest.approx(1 / root)
        assert constants.lipschitz == pytest.approx(distance) and constants.radius == pytest.approx(distance)
        # σ_max(θ) solves s + 1/s = θ² + 2, so dσ/dθ = 2θ/(1 − 1/s²), largest at θ = R.
        assert constants.largest_slope == pytest.approx(2 * distance / (1 - root**-2), rel=1e-6)


@pytest.mark.parametrize(("distance", "ratio"), [(0.5, 2.6909), (2, 33.971), (5, 727), (16, 66562)])
def test_fisher_ratio_has_the_known_values(distance, ratio):
    assert fisher_constants(gaussian(distance)).ratio == pytest.approx(ratio, rel=1e-4)


def test_hessian_changes_little_around_the_optimum_of_ence():
    around = hessian_neighbourhood(gaussian(2))
    assert around.upper == pytest.approx(1.169, abs=0.001) and around.radius == pytest.approx(0.5)
    for distance in (1, 2, 4, 8):
        problem = gaussian(distance)
        ratio = fisher_constants(problem).ratio
        around = hessian_neighbourhood(problem)
        assert around.upper <= 2 * math.e * ratio and around.lower >= 1 / (2 * math.e * ratio)


def test_change_of_the_hessian_is_bounded_once_the_parameter_set_contains_its_ball():
    """Printed: constants over Θ for every ball of radius 1/β_Z, even one that leaves Θ. True: if Θ contains it."""
    distance = 0.25
    problem = gaussian(distance)
    narrow = fisher_constants(problem)
    assert hessian_neighbourhood(problem).upper > 2 * math.e * narrow.ratio
    radius = (-distance + math.sqrt(distance**2 + 4)) / 2  # r(R + r) = 1: Θ = [−r, R + r] has β_Z = R + r = 1/r
    wide = fisher_constants(NCEProblem(GaussianMean(), (distance + radius,), (-radius,)))
    assert wide.lipschitz == pytest.approx(1 / radius)
    around = hessian_neighbourhood(problem, radius=radius)
    assert around.upper <= 2 * math.e * wide.ratio and around.lower >= 1 / (2 * math.e * wide.ratio)


def test_neighbourhood_works_in_many_dimensions():
    around = hessian_neighbourhood(NCEProblem.of(DiagonalGaussians(dimensions=3)), directions=16, shells=2, radius=0.01)
    assert 0 < around.lower <= 1 <= around.upper


@pytest.mark.parametrize(
    ("family", "first", "second"),
    [
        (GaussianMean(), [0.0], [1.5]),
        (DiagonalGaussian(), [1.0, 0.0], [1.3, 0.2]),
        (BernoulliProduct(2), [0.0, 0.4], [1.0, -1.0]),
        (PoissonFamily(), [0.3], [0.9]),
        (CategoricalFamily(3), [0.0, 1.0], [1.0, -0.5]),
    ],
)
def test_overlap_is_bounded_below_by_the_largest_variance(family, first, second):
    one, two = (torch.tensor(theta, dtype=torch.float64) for theta in (first, second))
    share = torch.linspace(0, 1, 101, dtype=torch.float64).unsqueeze(-1)
    along = torch.linalg.eigvalsh(family.covariance(one + share * (two - one)))[:, -1].max()
    overlap = bhattacharyya(family, first, second)
    assert overlap >= 1 - float(along * (one - two).square().sum()) / 8
    assert overlap < 1


def test_safe_bound_on_the_condition_number_holds_where_the_printed_one_fails():
    """Printed: κ* ≤ λ_max/(2λ_min BC), false at R = 0.5 (1.388 < 1.664). Safe: κ* ≤ 4(λ_max/λ_min)²/BC."""
    for distance in (0.5, 1, 2, 4, 8, 16):
        problem = gaussian(distance)
        ratio, kappa = fisher_constants(problem).ratio, condition_number(problem)
        assert kappa <= 4 * ratio**2 / problem.bc()
        assert (kappa <= ratio / (2 * problem.bc())) == (distance != 0.5)


def test_printed_lower_constant_of_the_hessian_change_is_impossible():
    """Printed: β_l = BC·16e^(−2−1/β_Z)·λ_min/λ_max·max{...}; at β_Z → ∞ and Q → P* it exceeds 1. True: 1/16."""
    problem = gaussian(4.0)
    near = NCEProblem(GaussianMean(), (40.0,), (39.99,))
    constants = fisher_constants(near)
    around = hessian_neighbourhood(near, "nce", radius=1e-3)
    shape = near.bc() * math.exp(-2 - 1 / constants.lipschitz)  # singular-value factors are 1 for unit steps of θ
    assert 16 * shape > 2 > around.upper >= around.lower > shape / 16
    assert hessian_neighbourhood(problem, "nce").lower > 0


def test_overlap_refuses_parameters_of_the_wrong_length():
    with pytest.raises(BadInput, match="first must be 1 numbers"):
        bhattacharyya(GaussianMean(), [0.0, 1.0], [0.0])
