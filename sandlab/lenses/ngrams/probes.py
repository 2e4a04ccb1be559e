"""Probes of a training run on in-context n-grams: where the first layer attends, what is predicted, the gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from sandlab.learning.experiment import Snapshot
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.ngrams.stages import head_lag_mass, nearest_lag_set
from sandlab.lenses.ngrams.theory import population_gradient
from sandlab.worlds.ngrams.in_context import InContextNgrams

__all__ = ["LagMass", "PopulationGradient", "first_layer_maps", "nearest_estimator"]

READ = 256  # held-out sequences on which attention and predictions are read
MAP_SIZE = 24  # positions of the attention maps that are kept: in larger pictures neighbouring lags look the same


@dataclass(frozen=True)
class LagMass:
    """Attention of each first-layer head on lags 0 … order + 1, mean over queries ("mass")."""

    order: int

    def __call__(self, now: Snapshot) -> dict[str, Tensor]:
        return {"mass": head_lag_mass(_first_pattern(now), self.order + 1, skip=self.order).float()}


def first_layer_maps(now: Snapshot) -> dict[str, Tensor]:
    """Mean attention maps of the first layer on the first positions (head, query, key): "maps"."""
    return {"maps": _first_pattern(now)[..., :MAP_SIZE, :MAP_SIZE].half()}


def nearest_estimator(now: Snapshot) -> dict[str, list[str]]:
    """The counting estimator nearest to the predictions, of all sets of lags, with and without smoothing: "nearest"."""
    assert isinstance(now.world, InContextNgrams)
    return {"nearest": nearest_lag_set(now.model, now.world, now.batch[:READ], smoothings=(0.0, 0.5)).name}


@dataclass(frozen=True)
class PopulationGradient:
    """Norm of the population gradient, estimated from this many fresh sequences: "gradient"."""

    sequences: int

    def __call__(self, now: Snapshot) -> dict[str, np.ndarray]:
        fresh = now.world.sample(self.sequences, rng=now.rng(2, "gradient"))
        return {"gradient": population_gradient(now.model, fresh)}


def _first_pattern(now: Snapshot) -> Tensor:
    return next(iter(attention_maps(now.model, now.batch[:READ].inputs).values()))
