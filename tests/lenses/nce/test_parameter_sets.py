"""Constants over sets of parameters: closed forms, and finite differences of eigenvalues."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.learning.nce.problem import NCEProblem
from sandlab.lenses.nce.constants import fisher_constants
from sandlab.lenses.nce.parameter_sets import fisher_constants_over
from sandlab.worlds.nce.families import DiagonalGaussian, GaussianMean


def test_over_a_segment_they_are_those_of_the_segment() -> None:
    segment = fisher_constants(NCEProblem(GaussianMean(), (3.0,), (0.0,)))
    over = fisher_constants_over(GaussianMean(), torch.linspace(0, 3, 201, dtype=torch.float64).unsqueeze(-1))
    assert vars(over) == pytest.approx(vars(segment), rel=1e-9)


def test_over_means_on_both_sides_of_zero_the_farthest_one_decides() -> None:
    over = fisher_constants_over(GaussianMean(), [[-4.0], [-1.0], [0.0], [2.0]])
    t = 4.0**2 + 2  # E[TTᵀ] of N(θ, 1) has determinant 1 and trace θ² + 2
    root = (t + math.sqrt(t**2 - 4)) / 2
    assert (over.largest, over.smallest) == pytest.approx((root, 1 / root))
    assert (over.lipschitz, over.radius) == pytest.approx((4.0, 4.0))
    assert over.largest_slope == pytest.approx(2 * 4.0 / (1 - root**-2))


def test_over_a_grid_of_precisions_and_means_they_are_extremes_of_matrices_of_moments() -> None:
    family = DiagonalGaussian(1)
    grid = [[precision, mean * precision] for precision in (0.5, 1.0, 2.0) for mean in (-1.0, 0.0, 2.0)]

    def spectrum(theta: list[float]) -> np.ndarray:
        """Eigenvalues of E[TTᵀ], T = [−x²/2, x, −1], from the moments of a normal variable."""
        variance, mean = 1 / theta[0], theta[1] / theta[0]
        second = mean**2 + variance
        third = mean**3 + 3 * mean * variance
        fourth = mean**4 + 6 * mean**2 * variance + 3 * variance**2
        rows = [[fourth / 4, -third / 2, second / 2], [-third / 2, second, -mean], [second / 2, -mean, 1]]
        return np.linalg.eigvalsh(np.array(rows))

    def slope(theta: list[float], index: int, step: float = 1e-5) -> float:
        moved = [(np.array(theta) + sign * step * axis) for axis in np.eye(2) for sign in (1, -1)]
        values = [spectrum(each.tolist())[index] for each in moved]
        return math.hypot(values[0] - values[1], values[2] - values[3]) / (2 * step)

    over = fisher_constants_over(family, grid)
    assert over.largest == pytest.approx(max(spectrum(theta)[-1] for theta in grid))
    assert over.smallest == pytest.approx(min(spectrum(theta)[0] for theta in grid))
    assert over.largest_slope == pytest.approx(max(slope(theta, -1) for theta in grid), rel=1e-4)
    assert over.smallest_slope == pytest.approx(max(slope(theta, 0) for theta in grid), rel=1e-4)
    assert over.radius == pytest.approx(max(math.hypot(*theta) for theta in grid))


@pytest.mark.parametrize("parameters", [[], [1.0, 2.0], [[-1.0, 0.0]]])
def test_sets_that_are_none_are_refused(parameters: list) -> None:
    with pytest.raises(sl.BadInput):
        fisher_constants_over(DiagonalGaussian(1), parameters)
