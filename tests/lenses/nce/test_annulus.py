"""The flat annulus around the optimum, its tail integrals, and the bounds on steps that follow from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import integrate

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.nce.problem import NCEProblem
from sandlab.lenses.nce.annulus import (
    annulus_points,
    decay_exponent,
    in_annulus,
    in_region,
    mean_distance,
    steepest_point,
    tail_terms,
)
from sandlab.lenses.nce.bounds import gd_step_lower_bound, newton_step_lower_bound
from sandlab.lenses.nce.constants import curvature_range
from sandlab.worlds.nce.families import GaussianMean
from sandlab.worlds.nce.gaussians import GaussianMeans


def gaussian(distance: float) -> NCEProblem:
    return NCEProblem.of(GaussianMeans(float(distance)))


@pytest.mark.parametrize(
    ("distance", "largest", "exponent"),
    [
        (6, None, 0.91),
        (8, 2.9e-3, 0.73),
        (10, 2.5e-4, 0.663),
        (12, 1.2e-5, 0.629),
        (16, 4.9e-9, 0.598),
        (20, 2.0e-13, 0.585),
    ],
)
def test_radial_gradient_on_the_annulus_is_exponentially_small(distance, largest, exponent):
    """Printed: exponent κ in [3/4, 5/4]. True: its minimum tends to 9/16, at b = 0.8R."""
    point = steepest_point(gaussian(distance))
    assert point.exponent == pytest.approx(exponent, abs=0.005)
    if largest:
        assert math.exp(point.log_gradient) == pytest.approx(largest, rel=0.03)
        assert point.log_gradient <= math.log(2) - 9 / 16 * distance**2 / 8
    assert point.b == pytest.approx(0.8 * distance, rel=0.03)


def test_exponent_tends_to_nine_sixteenths():
    assert steepest_point(gaussian(40)).exponent == pytest.approx(9 / 16, abs=0.006)
    values = decay_exponent(gaussian(20), annulus_points(20.0, radii=5, angles=90).flatten(0, 1))
    assert float(values.min()) < 0.75  # below the printed interval


@pytest.mark.parametrize("distance", [4, 6, 10, 20, 40])
def test_the_annulus_lies_inside_the_region_of_the_expansions(distance):
    points = annulus_points(float(distance)).flatten(0, 1)
    assert bool(in_annulus(points, distance).all()) and bool(in_region(points, distance).all())
    assert bool(in_region(torch.tensor([distance, distance**2 / 2], dtype=torch.float64), distance))
    assert not bool(in_region(torch.tensor([0.4 * distance, 0.0], dtype=torch.float64), distance))


def test_tail_terms_are_the_integrals_they_stand_for():
    distance, b, c = 3.0, 2.6, 5.0
    terms = tail_terms(torch.tensor([b, c], dtype=torch.float64), distance)
    x0 = float(terms.split)
    root = math.sqrt(2 * math.pi)
    p = lambda x: math.exp(-x * x / 2 + b * x - c)  # noqa: E731
    q = lambda x: math.exp(-x * x / 2) / root  # noqa: E731
    star = lambda x: math.exp(-((x - distance) ** 2) / 2) / root  # noqa: E731
    assert p(x0) == pytest.approx(q(x0))
    cases = [(p, -40, x0), (q, x0, 40), (star, -40, x0), (lambda x: star(x) * q(x) / p(x), x0, 30)]
    for index, (density, low, high) in enumerate(cases):
        zeroth = integrate.quad(density, low, high, epsabs=1e-14)[0]
        first = integrate.quad(lambda x, density=density: x * density(x), low, high, epsabs=1e-14)[0]
        assert float(terms.zeroth[index]) == pytest.approx(zeroth, rel=1e-8)
        assert float(terms.first[index]) == pytest.approx(first, rel=1e-8)


def test_tail_terms_bound_the_gradient_on_the_annulus():
    for distance in (6, 12, 20):
        points = annulus_points(float(distance), radii=5, angles=40).flatten(0, 1)
        gradient = gaussian(distance).grad(points)
        assert bool((gradient[:, 1].abs() <= 0.5 * tail_terms(points, distance).zeroth.sum(-1)).all())


def test_gradient_norm_is_bounded_by_the_larger_mean():
    for distance in (1, 8, 16):
        tau = torch.randn(40, 2, generator=sl.rng(0), dtype=torch.float64) * torch.tensor([3.0 * distance, distance**2])
        largest = gaussian(distance).grad(tau).norm(dim=-1) / torch.clamp(tau[:, 0].abs(), min=distance)
        assert float(largest.max()) <= 1  # printed with the factor 32


def test_newton_s_conservative_step_is_exponentially_small():
    curvature = curvature_range(gaussian(8))
    assert curvature.largest == pytest.approx(8.373, abs=0.001)
    assert curvature.smallest == pytest.approx(1.73e-7, rel=0.01)
    assert curvature.newton_rate == pytest.approx(2e-8, rel=0.05)
    bounds = [newton_step_lower_bound(gaussian(distance)) for distance in (8, 12, 16, 20)]
    assert np.diff(bounds) == pytest.approx(9 / 128 * np.diff(np.array([8, 12, 16, 20]) ** 2.0), rel=0.2)


def test_gradient_descent_s_bound_halves_when_the_step_doubles():
    problem = gaussian(10)
    assert gd_step_lower_bound(problem, 0.1) - gd_step_lower_bound(problem, 0.2) == pytest.approx(math.log(2))


def test_the_annulus_is_refused_where_it_is_not_defined():
    with pytest.raises(BadInput, match="one-dimensional Gaussian means, noise at 0"):
        mean_distance(NCEProblem(GaussianMean(), (3.0,), (1.0,)))
    with pytest.raises(BadInput, match="b > 0"):
        tail_terms(torch.tensor([-1.0, 2.0]), 4.0)
