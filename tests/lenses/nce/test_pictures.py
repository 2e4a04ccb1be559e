"""Landscapes of contrastive losses and the pictures of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.nce.descent import optimise
from sandlab.learning.nce.problem import NCEProblem
from sandlab.lenses.nce.constants import condition_number
from sandlab.lenses.nce.pictures import animate_path, draw_chasm, draw_landscape, draw_surface, nce_landscape
from sandlab.worlds.nce.gaussians import DiagonalGaussians, GaussianMeans


def gaussian(distance: float) -> NCEProblem:
    return NCEProblem.of(GaussianMeans(float(distance)))


def test_landscape_values_are_those_of_the_problem():
    problem = gaussian(4)
    scape = nce_landscape(problem, np.linspace(1, 6, 7), np.linspace(2, 12, 5))
    tau = torch.tensor([scape.b[3], scape.c[2]], dtype=torch.float64)
    assert scape.log_loss[2, 3] == pytest.approx(math.log10(float(problem.loss(tau))))
    assert scape.log_norm[2, 3] == pytest.approx(math.log10(float(problem.grad(tau).norm())))
    assert scape.log_condition[2, 3] == pytest.approx(math.log10(condition_number(problem, tau=tau)))


def test_pictures_are_drawn_with_their_paths():
    from matplotlib.figure import Figure

    problem = gaussian(3)
    path = optimise(problem, rate=0.2, steps=20).tau
    scape = nce_landscape(problem, np.linspace(-1, 4, 12), np.linspace(0, 7, 12))
    figure = Figure()
    axis = figure.add_subplot(121)
    draw_landscape(axis, scape, paths={"ngd": path})
    assert len(axis.lines) == 2 and axis.get_xlabel() == "slope b"
    surface = draw_surface(figure, 122, scape, paths={"ngd": path})
    assert len(surface.lines) == 1
    chasm = Figure().add_subplot()
    draw_chasm(chasm, problem, rng=sl.rng(0))
    assert len(chasm.lines) == 4 and len(chasm.figure.axes) == 2  # weights have a second axis
    animation = animate_path(problem, path, frames=4)
    curve, point = animation._func(20)
    assert point.get_xdata()[0] == pytest.approx(float(path[20, 0]))
    assert max(curve.get_ydata()) > 0
    animation._draw_was_started = True


def test_landscapes_need_two_coordinates_and_a_known_map():
    with pytest.raises(BadInput, match="needs two coordinates"):
        nce_landscape(NCEProblem.of(DiagonalGaussians()), np.zeros(2), np.zeros(2))
    with pytest.raises(BadInput, match="what must be one of"):
        nce_landscape(gaussian(2), np.zeros(2), np.zeros(2)).values("loss")
