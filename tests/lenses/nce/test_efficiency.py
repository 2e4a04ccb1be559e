"""Asymptotic errors against closed forms and against estimates from samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sandlab as sl
from sandlab.learning.nce.problem import NCEProblem
from sandlab.lenses.nce.efficiency import asymptotic_error
from sandlab.worlds.nce.families import BernoulliProduct, GaussianMean, PoissonFamily


def moments(mean: float) -> np.ndarray:
    """E[TTᵀ] of N(mean, 1), T = [x, −1]."""
    return np.array([[1 + mean**2, -mean], [-mean, 1.0]])


@pytest.mark.parametrize("distance", [0.5, 1.0, 3.0])
def test_of_gaussian_means_the_error_of_ence_has_a_closed_form(distance: float) -> None:
    overlap, middle = math.exp(-(distance**2) / 8), np.array([distance / 2, -1.0])
    spread = (moments(0) + moments(distance)) / 4 - overlap**2 * np.outer(middle, middle) / 2
    inverse = np.linalg.inv(overlap / 4 * moments(distance / 2))
    problem = NCEProblem(GaussianMean(), (distance,), (0.0,))
    assert asymptotic_error(problem, "ence") == pytest.approx(np.trace(inverse @ spread / 4 @ inverse), rel=1e-8)


def test_without_distance_nce_needs_twice_the_samples_of_maximum_likelihood() -> None:
    same = NCEProblem(GaussianMean(), (0.0,), (0.0,))
    assert asymptotic_error(same) == pytest.approx(2.0) and asymptotic_error(same, "likelihood") == pytest.approx(1.0)


@pytest.mark.gate(2)
@pytest.mark.parametrize("kind", ["nce", "ence", "likelihood"])
def test_it_is_the_error_of_estimates_from_large_samples(kind: str) -> None:
    problem, n = NCEProblem(PoissonFamily(), (0.3,), (-0.2,)), 4000
    found = []
    for seed in range(400):
        source = sl.rng(seed)
        if kind == "likelihood":
            tau = problem.maximum_likelihood(n, rng=source)
        else:
            objective, tau = problem.sample(kind, n=n, rng=source), problem.tau_q
            for _ in range(7):
                tau = tau - sl.learning.newton_direction(objective, tau)
        found.append(n * float(problem.distance(tau)) ** 2)
    assert np.mean(found) == pytest.approx(asymptotic_error(problem, kind), rel=0.2)


def test_maximum_likelihood_is_the_most_efficient_and_other_names_are_refused() -> None:
    problem = NCEProblem(BernoulliProduct(2), (0.5, -0.3), (0.0, 0.0))
    likelihood, nce, ence = (asymptotic_error(problem, kind) for kind in ("likelihood", "nce", "ence"))
    assert likelihood < nce < ence
    with pytest.raises(sl.BadInput, match="kind"):
        asymptotic_error(problem, "mle")
