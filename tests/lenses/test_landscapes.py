"""Loss along lines and over planes."""

import numpy as np
import pytest
import torch
from torch import nn

from sandlab.errors import BadInput
from sandlab.lenses import filter_normalised, loss_along_line, loss_over_plane
from sandlab.models import Transformer
from sandlab.models.base import seeded
from sandlab.random import rng


def bowl(model: nn.Module) -> torch.Tensor:
    """½‖θ‖², whose values along any line and over any plane are known."""
    return 0.5 * sum(parameter.square().sum() for parameter in model.parameters())


def vector(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_the_line_between_two_models_meets_both_and_is_a_parabola_over_a_bowl():
    first, second = nn.Linear(3, 2).double(), nn.Linear(3, 2).double()
    times, losses = loss_along_line(first, second, bowl, points=11, start=-0.5, stop=1.5)
    line = [(1 - t) * vector(first) + t * vector(second) for t in times]
    np.testing.assert_allclose(losses, [0.5 * float(v @ v) for v in line])
    assert bowl(first).item() == pytest.approx(0.5 * float(vector(first) @ vector(first))), "the models are untouched"


def test_models_of_different_shape_have_no_line_between_them():
    with pytest.raises(BadInput, match="architecture"):
        loss_along_line(nn.Linear(3, 2), nn.Linear(2, 3), bowl)


def test_the_plane_is_centred_on_the_model_and_follows_the_directions():
    model = nn.Linear(2, 2).double()
    centre = vector(model)
    right, up = torch.eye(6, dtype=torch.float64)[0], torch.eye(6, dtype=torch.float64)[4]
    found = loss_over_plane(model, bowl, directions=(right, up), span=2.0, points=5)
    for row, y in enumerate(found.y):
        for column, x in enumerate(found.x):
            point = centre + x * right + y * up
            assert found.loss[row, column] == pytest.approx(0.5 * float(point @ point))
    assert found.loss[2, 2] == pytest.approx(bowl(model).item())


def test_a_filter_normalised_direction_is_as_long_as_each_row_of_the_model():
    with seeded(0):
        model = Transformer(vocab=3, length=4, layers=1, width=8, init_std=0.3)
    direction = filter_normalised(model, rng=rng(0))
    parts = direction.split([parameter.numel() for parameter in model.parameters()])
    for part, parameter in zip(parts, model.parameters()):
        if parameter.ndim < 2:
            assert (part == 0).all()
        else:
            torch.testing.assert_close(part.view_as(parameter).norm(dim=-1), parameter.detach().norm(dim=-1))


def test_directions_or_a_generator_are_needed():
    with pytest.raises(BadInput, match="rng"):
        loss_over_plane(nn.Linear(2, 2), bowl)
