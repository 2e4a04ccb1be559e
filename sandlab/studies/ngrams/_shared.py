"""What the studies of this chapter share: the source, model configs, and the probes of a training run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from sandlab.learning.experiment import Experiment, Snapshot
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.ngrams.stages import head_lag_mass, nearest_lag_set
from sandlab.lenses.ngrams.theory import population_gradient
from sandlab.models.base import Config, Model, seeded
from sandlab.models.ngrams.simplified import SimplifiedTransformerConfig
from sandlab.random import rng
from sandlab.worlds.base import World, cross_entropy
from sandlab.worlds.ngrams.in_context import InContextNgrams

SOURCE = "Varre, Yüce and Flammarion 2025, Learning in-context n-grams with transformers"
READ = 256  # held-out sequences on which attention and predictions are read
MAP_SIZE = 24  # positions of the attention maps that are kept: in larger pictures neighbouring lags look the same


def simplified(world: InContextNgrams, *, heads: int, query_skip: bool = True) -> SimplifiedTransformerConfig:
    """The simplified transformer for a world."""
    return SimplifiedTransformerConfig(vocab=world.states, length=world.length, heads=heads, query_skip=query_skip)


def config_of(preset: Callable[..., Model], world: InContextNgrams, **options: str) -> Config:
    """The config of one of `sandlab.models.ngrams.presets` for a world, with one first-layer head per lag."""
    with seeded(0):
        return preset(world.states, world.length, world.order, **options).config


def untrained(experiment: Experiment) -> Experiment:
    """The same experiment with a learning rate of zero: the weights stay as they were drawn."""
    return replace(experiment, training=replace(experiment.training, lr=0.0))


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


def estimator_losses(world: World, examples: int = 16384) -> dict[str, float]:
    """Losses of the add-α counting estimators, by name."""
    test = world.sample(examples, rng=rng(1, "levels"))
    return {name: float(cross_entropy(estimate(test), test)) for name, estimate in world.baselines().items()}


def _first_pattern(now: Snapshot) -> Tensor:
    return next(iter(attention_maps(now.model, now.batch[:READ].inputs).values()))
