"""Training runs on in-context n-grams, shared by the studies of this chapter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.gradients import gradient_norms
from sandlab.lenses.ngrams.stages import head_lag_mass, nearest_lag_set
from sandlab.models.ngrams.presets import cat_tf, tf_additive, tf_additive_mlp
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.random import rng
from sandlab.worlds.base import Batch, cross_entropy
from sandlab.worlds.ngrams.in_context import InContextNgrams

__all__ = ["MODELS", "SOURCE", "Run", "estimator_losses", "population_gradient", "split_seeds", "train_run"]

SOURCE = "Varre, Yüce and Flammarion 2025, Learning in-context n-grams with transformers"
MODELS = ("simplified", "additive one-hot", "additive learned", "additive with feed-forward", "disentangled")


@dataclass(frozen=True)
class Run:
    """One setting, trained for several seeds: every member sees sequences of its own.

    gradients   batches from which the norm of the population gradient is estimated at each look (0: not measured)
    nearest     look for the nearest counting estimator at each look
    test        sequences of the fixed test set
    """

    seeds: tuple[int, ...] = (0,)
    device: str = "cpu"
    model: str = "simplified"
    states: int = 5
    order: int = 2
    length: int = 32
    concentration: float = 0.5
    heads: int = 2
    query_skip: bool = True
    steps: int = 2000
    batch_size: int = 128
    lr: float = 0.01
    beta: float = 0.9
    weight_decay: float = 0.0
    looks: int = 60
    test: int = 4096
    gradients: int = 0
    nearest: bool = False

    @property
    def world(self) -> InContextNgrams:
        return InContextNgrams(self.states, self.order, self.length, self.concentration)


def train_run(run: Run) -> dict[str, Any]:
    """Test loss, lag masses, gradient norms and nearest estimators over steps, and the first seed's layer-1 maps."""
    world = run.world
    population = Population(lambda seed: build(run), seeds=run.seeds).to(run.device)
    test = world.sample(run.test, rng=rng(1, "test", device=run.device))
    few = test[:256]
    film: dict[str, list[Any]] = {name: [] for name in ("steps", "mass", "maps", "gradient", "norms", "nearest")}
    fresh = rng(2, "gradient", device=run.device)

    def look(step: int, model: Any, _metrics: Any) -> None:
        pattern = next(iter(attention_maps(model, few.inputs).values()))
        film["steps"].append(step)
        film["mass"].append(head_lag_mass(pattern, run.order + 1, skip=run.order).float().cpu().numpy())
        film["maps"].append(pattern[0].half().cpu().numpy())
        film["norms"].append(_norms(model))
        if run.gradients:
            film["gradient"].append(population_gradient(model, world.sample(run.batch_size * run.gradients, rng=fresh)))
        if run.nearest:
            film["nearest"].append(nearest_lag_set(model, world, few, smoothings=(0.0, 0.5))["nearest"])

    histories = train(
        population,
        world,
        steps=run.steps,
        batch_size=run.batch_size,
        rng=rng(0, "data", device=run.device),
        optimizer="adamw",
        lr=run.lr,
        betas=(run.beta, 0.999),
        weight_decay=run.weight_decay,
        evaluate=test,
        every=max(1, run.steps // run.looks),
        callbacks=[look],
        data="separate",
    )
    found: dict[str, Any] = {
        "steps": np.array(film["steps"]),
        "loss": np.stack([history.metrics["loss"] for history in histories]),
        "mass": np.stack(film["mass"], 1),
        "maps": np.stack(film["maps"]),
        "norms": np.stack(film["norms"], 1),
    }
    if run.gradients:
        found["gradient"] = np.stack(film["gradient"], 1)
    if run.nearest:
        found["nearest"] = [list(names) for names in zip(*film["nearest"])]
    return found


def population_gradient(model: nn.Module, batch: Batch) -> np.ndarray:
    """‖E gradient‖ of each member, free of the noise of the batch: √⟨g₁, g₂⟩ of the gradients of two halves (0 if < 0).

    ⟨g₁, g₂⟩ = 2 ‖(g₁ + g₂)/2‖² − (‖g₁‖² + ‖g₂‖²)/2.
    """
    half = len(batch) // 2
    parts = (batch[: 2 * half], batch[:half], batch[half : 2 * half])
    whole, first, second = (torch.as_tensor(gradient_norms(model, part)["all"]).square() for part in parts)
    return (2 * whole - (first + second) / 2).clamp(min=0.0).sqrt().cpu().numpy()


def build(run: Run) -> nn.Module:
    """The model of a run."""
    if run.model == "simplified":
        return SimplifiedTransformer(vocab=run.states, length=run.length, heads=run.heads, query_skip=run.query_skip)
    if run.model == "disentangled":
        return cat_tf(run.states, run.length, run.heads)
    if run.model == "additive with feed-forward":
        return tf_additive_mlp(run.states, run.length, run.heads)
    embedding = "one-hot" if run.model == "additive one-hot" else "learned"
    return tf_additive(run.states, run.length, run.heads, embedding=embedding)


def estimator_losses(run: Run) -> dict[str, float]:
    """Losses of the add-α counting estimators on the test set, by name."""
    world = run.world
    test = world.sample(max(run.test, 16384), rng=rng(1, "levels"))
    return {name: float(cross_entropy(estimate(test), test)) for name, estimate in world.baselines().items()}


def _norms(model: Population) -> np.ndarray:
    squares = [weight.detach().flatten(1).square().sum(1) for weight in model.stacked.values()]
    return torch.stack(squares).sum(0).sqrt().cpu().numpy()


def split_seeds(run: Run, seeds: int, device: str) -> list[Run]:
    """One job per seed on a CPU, one population on a GPU."""
    groups = [(seed,) for seed in range(seeds)] if device == "cpu" else [tuple(range(seeds))]
    return [replace(run, seeds=group, device=device) for group in groups]
