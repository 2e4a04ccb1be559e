"""Loss along a line or over a plane in weight space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import BadInput, integer, number
from sandlab.lenses._flat import FlatLoss
from sandlab.lenses.predictions import Loss
from sandlab.registry import register

__all__ = ["Landscape", "filter_normalised", "loss_along_line", "loss_over_plane"]


@dataclass(frozen=True)
class Landscape:
    """Loss over a plane: `loss[i, j]` at centre + x[j] · first direction + y[i] · second direction."""

    x: np.ndarray
    y: np.ndarray
    loss: np.ndarray
    directions: tuple[Tensor, Tensor]


@register("lenses")
def loss_along_line(
    first: nn.Module, second: nn.Module, loss: Loss, *, points: int = 21, start: float = 0.0, stop: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """L((1 − t) θ₁ + t θ₂) for t from `start` to `stop`: is there a barrier between two models of the same shape?

    Returns t and the losses (Goodfellow et al. 2015; Frankle et al. 2020).
    """
    integer("points", points, low=2)
    here, there = FlatLoss(first, loss), FlatLoss(second, loss)
    if here.shapes != there.shapes:
        raise BadInput("the two models have different parameters: interpolation needs the same architecture")
    times = np.linspace(start, stop, points)
    begin, end = here.point, there.point
    with torch.no_grad():
        losses = [float(here(torch.lerp(begin, end, float(time)))) for time in times]
    return times, np.array(losses)


@register("lenses")
def loss_over_plane(
    model: nn.Module,
    loss: Loss,
    *,
    rng: torch.Generator | None = None,
    directions: tuple[Tensor, Tensor] | None = None,
    span: float = 1.0,
    points: int = 21,
) -> Landscape:
    """L(θ + x d₁ + y d₂) on a square grid, x and y in [−span, span].

    Without given directions, two random ones are drawn and filter-normalised (Li et al. 2018): span 1 then means a
    change as large as the weights themselves, whatever the scale of each layer.
    """
    integer("points", points, low=2)
    number("span", span, low=0.0)
    flat = FlatLoss(model, loss)
    centre = flat.point
    if directions is None:
        if rng is None:
            raise BadInput(
                "loss_over_plane needs rng to draw its directions (or give the directions): try rng=sandlab.rng(0)"
            )
        directions = (filter_normalised(model, rng=rng), filter_normalised(model, rng=rng))
    grid = np.linspace(-span, span, points)
    right, up = (direction.to(centre) for direction in directions)
    with torch.no_grad():
        losses = [[float(flat(centre + float(x) * right + float(y) * up)) for x in grid] for y in grid]
    return Landscape(grid, grid, np.array(losses), (right, up))


def filter_normalised(model: nn.Module, *, rng: torch.Generator) -> Float[Tensor, "parameters"]:
    """A random direction whose rows have the norms of the model's rows, matrix by matrix; biases and gains are 0."""
    parts = []
    for parameter in model.parameters():
        weight = parameter.detach()
        drawn = torch.randn(weight.shape, generator=rng, device=rng.device).to(weight)
        if weight.ndim < 2:
            parts.append(torch.zeros_like(weight).flatten())
            continue
        axes = tuple(range(1, weight.ndim))
        own, length = weight.norm(dim=axes, keepdim=True), drawn.norm(dim=axes, keepdim=True)
        parts.append((drawn * own / length.clamp(min=1e-12)).flatten())
    return torch.cat(parts)
