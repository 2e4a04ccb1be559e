"""Curvature at the marginal: against the closed form, and against finite differences of the enumerated loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.circuits import marginal_predictor
from sandlab.lenses import MarginalPoint, enumerated_chain_loss, marginal_curvature


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(("p", "q"), [(0.2, 0.3), (0.5, 0.8)])
def test_the_bare_model_has_the_closed_form(p: float, q: float, tied: bool) -> None:
    found = marginal_curvature(MarginalPoint(p, q, tied, length=4, width=3))
    expected = found.at.theory.marginal_curvatures(3, tied)
    assert found.values == pytest.approx(expected, abs=1e-10)
    assert found.gradient < 1e-12 and found.loss == pytest.approx(found.at.theory.marginal_loss, abs=1e-12)


def test_the_second_derivative_in_the_bias_is_a_second_difference_of_the_loss() -> None:
    model, loss = marginal_predictor(0.2, 0.3, length=3, width=2), enumerated_chain_loss(0.2, 0.3, 3)

    def at(shift: float) -> float:
        with torch.no_grad():
            model.bias += shift
            value = float(loss(model))
            model.bias -= shift
        return value

    second = (at(1e-3) - 2 * at(0.0) + at(-1e-3)) / 1e-6
    assert second == pytest.approx(marginal_curvature(MarginalPoint(0.2, 0.3, True, 3, 2)).values[-1], rel=1e-4)


def test_the_other_weights_add_zeros_and_leave_the_signs() -> None:
    found = marginal_curvature(MarginalPoint(0.5, 0.8, True, length=3, width=2, seed=0))
    assert found.values.min() > -1e-10 and (np.abs(found.values) < 1e-9).sum() > 20
