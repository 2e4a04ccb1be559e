"""What the studies of this chapter share: the source, the models, and the probes of a training run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from sandlab.learning.experiment import Snapshot
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.gradients import gradient_norms
from sandlab.lenses.ngrams.stages import head_lag_mass, nearest_lag_set
from sandlab.random import rng
from sandlab.worlds.base import Batch, cross_entropy
from sandlab.worlds.ngrams.in_context import InContextNgrams

SOURCE = "Varre, Yüce and Flammarion 2025, Learning in-context n-grams with transformers"
SHOWN = 256  # held-out sequences on which attention and predictions are read


@dataclass(frozen=True)
class LagMass:
    """Attention of each first-layer head on lags 0 … order + 1, mean over queries ("mass")."""

    order: int

    def __call__(self, now: Snapshot) -> dict[str, Tensor]:
        return {"mass": head_lag_mass(_first_pattern(now), self.order + 1, skip=self.order).float()}


def first_layer_maps(now: Snapshot) -> dict[str, Tensor]:
    """Mean attention maps of the first layer (head, query, key): "maps"."""
    return {"maps": _first_pattern(now).half()}


def nearest_estimator(now: Snapshot) -> dict[str, list[str]]:
    """The counting estimator nearest to the predictions, of all sets of lags, with and without smoothing: "nearest"."""
    assert isinstance(now.world, InContextNgrams)
    return {"nearest": nearest_lag_set(now.model, now.world, now.batch[:SHOWN], smoothings=(0.0, 0.5))["nearest"]}


def weight_norm(now: Snapshot) -> dict[str, Tensor]:
    """Norm of all weights together: "norms"."""
    squares = [weight.detach().flatten(1).square().sum(1) for weight in now.model.stacked.values()]
    return {"norms": torch.stack(squares).sum(0).sqrt()}


@dataclass(frozen=True)
class PopulationGradient:
    """Norm of the population gradient, estimated from so many fresh sequences: "gradient"."""

    sequences: int

    def __call__(self, now: Snapshot) -> dict[str, np.ndarray]:
        fresh = now.world.sample(self.sequences, rng=now.rng(2, "gradient"))
        return {"gradient": population_gradient(now.model, fresh)}


def population_gradient(model: nn.Module, batch: Batch) -> np.ndarray:
    """‖E gradient‖ of each member, free of the noise of the batch: √⟨g₁, g₂⟩ of the gradients of two halves (0 if < 0).

    ⟨g₁, g₂⟩ = 2 ‖(g₁ + g₂)/2‖² − (‖g₁‖² + ‖g₂‖²)/2.
    """
    half = len(batch) // 2
    parts = (batch[: 2 * half], batch[:half], batch[half : 2 * half])
    whole, first, second = (torch.as_tensor(gradient_norms(model, part)["all"]).square() for part in parts)
    return (2 * whole - (first + second) / 2).clamp(min=0.0).sqrt().cpu().numpy()


def estimator_losses(world: InContextNgrams, examples: int = 16384) -> dict[str, float]:
    """Losses of the add-α counting estimators, by name."""
    test = world.sample(examples, rng=rng(1, "levels"))
    return {name: float(cross_entropy(estimate(test), test)) for name, estimate in world.baselines().items()}


def _first_pattern(now: Snapshot) -> Tensor:
    return next(iter(attention_maps(now.model, now.batch[:SHOWN].inputs).values()))
