"""Accuracy: how often the most likely prediction is the true target."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sandlab.errors import integer
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["accuracy", "accuracy_on", "agreement"]


@register("lenses")
def accuracy(
    model: nn.Module, world: World, *, examples: int = 1024, rng: torch.Generator, chunk: int = 256
) -> float | Tensor:
    """Share of counted targets on which the model's most likely class is the true one, over fresh examples.

    A population gives one share per member. Examples are drawn and run `chunk` at a time, so that many long ones fit
    into memory; where targets are distributions over classes, the truth is their most likely class.
    """
    integer("examples", examples, low=1)
    integer("chunk", chunk, low=1)
    hits = torch.zeros((), dtype=torch.float64)
    counted = 0.0
    for start in range(0, examples, chunk):
        batch = world.sample(min(chunk, examples - start), rng=rng)
        weight = float(batch.mask.sum())
        hits = hits.to(batch.inputs.device) + weight * _share(model, batch)
        counted += weight
    return _number(hits / max(counted, 1.0))


agreement = accuracy
"""The former name of `accuracy`."""


def accuracy_on(model: nn.Module, batch: Batch) -> float | Tensor:
    """`accuracy` on a given batch."""
    return _number(_share(model, batch))


def _share(model: nn.Module, batch: Batch) -> Tensor:
    with evaluating(model), torch.no_grad():
        choice = log_predictions(model, batch).argmax(-1)
    truth = batch.targets.argmax(-1) if batch.soft else batch.targets
    right = ((choice == truth) & batch.mask).flatten(-batch.mask.ndim).sum(-1)
    return right.double() / batch.mask.sum().clamp(min=1)


def _number(share: Tensor) -> float | Tensor:
    return float(share) if share.ndim == 0 else share
