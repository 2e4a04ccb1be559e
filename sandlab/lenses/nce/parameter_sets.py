"""Constants of an exponential family over any set of parameters, not only between noise and data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import torch
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.learning.nce.problem import NCEProblem
from sandlab.lenses.nce.constants import FisherConstants, fisher_constants
from sandlab.registry import register
from sandlab.worlds.nce.exponential_family import ExponentialFamily

__all__ = ["fisher_constants_over"]


@register("lenses")
def fisher_constants_over(family: ExponentialFamily, parameters: Sequence[Sequence[float]] | Tensor) -> FisherConstants:
    """λ_max, λ_min, β_Z, γ_max, γ_min and ω over a set Θ that is given point by point, such as the nodes of a grid.

    parameters   a natural parameter θ in every row

    Source: Liu 2024 (thesis, CMU-ML-24-110), assumptions 11–14.
    """
    rows = torch.as_tensor(parameters, dtype=torch.float64)
    if rows.ndim != 2 or len(rows) == 0:
        raise BadInput(f"parameters must have a parameter θ in every row, got the shape {tuple(rows.shape)}")
    # A segment that starts and ends in θ is the point θ.
    points = [fisher_constants(NCEProblem(family, row, row), points=2) for row in rows]
    largest = {each.name: max(getattr(point, each.name) for point in points) for each in fields(FisherConstants)}
    return FisherConstants(**largest | {"smallest": min(point.smallest for point in points)})
