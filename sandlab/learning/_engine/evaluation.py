"""Measurements on held-out batches, per member."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from sandlab.checking import checked_types
from sandlab.errors import BadInput, integer
from sandlab.learning._engine.sources import Source
from sandlab.learning.objectives import LossFunction, Objective, as_objective, member_accuracy
from sandlab.learning.population import Population, one_or_many
from sandlab.progress import ProgressBar
from sandlab.random import rng as make_rng
from sandlab.worlds.base import Batch, World

__all__ = ["Evaluate", "Evaluation", "Metrics", "evaluate", "evaluate_batch", "make_evaluation", "prepare_once"]

Metrics: TypeAlias = dict[str, np.ndarray]
Evaluation: TypeAlias = Callable[[nn.Module], Metrics]
# A function of the model may expect a Population or a certain module.
Evaluate: TypeAlias = Batch | Mapping[str, Batch] | Callable[[Any], Mapping[str, ArrayLike | Tensor]]
# Largest number of positions × members computed at once: bounds the memory of an evaluation.
_AT_ONCE = 1 << 20


def evaluate_batch(model: nn.Module, batch: Batch, objective: Objective) -> dict[str, Tensor]:
    """Loss and, for classes, accuracy of a model (numbers) or of a population (one per member), in eval mode.

    A large batch is computed in parts; each part's mean counts by the number of its counted targets.
    """
    members = len(model) if isinstance(model, Population) else 1
    positions = max(1, batch.mask[0].numel())
    rows = max(1, _AT_ONCE // (positions * members))
    training, weight = model.training, 0.0
    totals: dict[str, Tensor] = {}
    model.eval()
    try:
        with torch.no_grad():
            for start in range(0, len(batch), rows):
                part = batch[start : start + rows]
                counted = float(part.mask.sum())
                weight += counted
                logits = model(part.inputs)
                measured = {"loss": objective(logits, part)}
                if part.soft or not part.targets.is_floating_point():
                    measured["accuracy"] = member_accuracy(logits, part)
                for name, value in measured.items():
                    totals[name] = value * counted + totals.get(name, 0.0)
    finally:
        model.train(training)
    return {name: value / max(weight, 1.0) for name, value in totals.items()}


def _numbers(metrics: Metrics) -> dict[str, float]:
    return {name: float(value[0]) for name, value in metrics.items()}


@one_or_many(_numbers)
@checked_types
def evaluate(
    model: nn.Module,
    world: World,
    *,
    examples: int,
    rng: torch.Generator,
    batch_size: int = 1024,
    objective: str | Objective | LossFunction | None = None,
    progress: bool | None = None,
) -> Metrics:
    """Loss and accuracy over fresh examples of a world, drawn batch by batch: memory does not grow with `examples`.

    Numbers for a model, arrays over members for a population.
    """
    integer("examples", examples, low=1)
    integer("batch_size", batch_size, low=1)
    goal = as_objective(objective)
    device = next(model.parameters()).device
    totals: dict[str, Tensor] = {}
    weight, done = 0.0, 0
    with ProgressBar("evaluating", examples, unit="examples", show=progress) as bar:
        while done < examples:
            batch = Source(world, min(batch_size, examples - done), rng, goal, device).draw(0)
            counted = float(batch.mask.sum())
            for name, value in evaluate_batch(model, batch, goal).items():
                totals[name] = totals.get(name, 0.0) + value.double() * counted
            weight, done = weight + counted, done + len(batch)
            bar.update(done)
    return {name: (value / max(weight, 1.0)).reshape(-1).cpu().numpy() for name, value in totals.items()}


def make_evaluation(
    given: Evaluate | None, objective: Objective, device: torch.device, members: int
) -> Evaluation | None:
    """A function from the model to metrics (name → one value per member).

    One batch gives "loss" and "accuracy"; a dictionary of batches gives "name/loss" and "name/accuracy"; a function
    of the model gives what it returns.
    """
    if given is None:
        return None
    if isinstance(given, Batch):
        given = {"": given}
    if isinstance(given, Mapping):
        for name, batch in given.items():
            if not isinstance(batch, Batch):
                raise BadInput(f"evaluate[{name!r}] must be a Batch, got {type(batch).__name__}")
        batches = {name: prepare_once(batch, objective).to(device) for name, batch in given.items()}
        return lambda model: {
            f"{name}/{metric}" if name else metric: _vector(metric, value, members)
            for name, batch in batches.items()
            for metric, value in evaluate_batch(model, batch, objective).items()
        }
    if not callable(given):
        raise BadInput(f"evaluate must be a Batch, a dictionary of them or a function, got {type(given).__name__}")
    measure = given
    return lambda model: {name: _vector(name, value, members) for name, value in measure(model).items()}


def prepare_once(batch: Batch, objective: Objective) -> Batch:
    """The batch as the objective prepares it, always in the same way: held-out data stay fixed."""
    return objective.prepare(batch, make_rng(0, "evaluation", device=batch.inputs.device))


def _vector(name: str, value: ArrayLike | Tensor, members: int) -> np.ndarray:
    """A metric with the member axis first: numbers as float64, arrays and words as they are."""
    values = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
    values = values.reshape(1, *values.shape) if members == 1 and values.ndim == 0 else values
    if values.ndim == 0 or len(values) != members:
        raise BadInput(f"metric {name!r} must have one value per member ({members}), got shape {values.shape}")
    return values.astype(np.float64) if values.ndim == 1 and values.dtype.kind in "biuf" else values
