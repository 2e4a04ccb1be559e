"""How often a model's first choice is the truth."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sandlab.errors import integer
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.registry import register
from sandlab.worlds.base import Batch

__all__ = ["agreement", "agreement_on"]


@register("lenses")
def agreement(
    model: nn.Module, world: Any, *, examples: int = 1024, rng: torch.Generator, chunk: int = 256
) -> float | Tensor:
    """Share of counted targets on which the model's most likely class is the true one, over fresh examples.

    A population gives one share per member. Examples are drawn and run `chunk` at a time, so that many long ones fit
    into memory; where targets are laws over classes, the truth is their most likely class.
    """
    integer("examples", examples, low=1)
    integer("chunk", chunk, low=1)
    hits: float | Tensor = 0.0
    counted = 0.0
    for start in range(0, examples, chunk):
        batch = world.sample(min(chunk, examples - start), rng=rng)
        weight = float(batch.mask.sum())
        hits = hits + weight * _share(model, batch)
        counted += weight
    share = hits / max(counted, 1.0)
    return float(share) if not isinstance(share, Tensor) or share.ndim == 0 else share


def agreement_on(model: nn.Module, batch: Batch) -> float | Tensor:
    """`agreement` on a given batch."""
    share = _share(model, batch)
    return float(share) if share.ndim == 0 else share


def _share(model: nn.Module, batch: Batch) -> Tensor:
    with evaluating(model), torch.no_grad():
        choice = log_predictions(model, batch).argmax(-1)
    truth = batch.targets.argmax(-1) if batch.soft else batch.targets
    right = ((choice == truth) & batch.mask).flatten(-batch.mask.ndim).sum(-1)
    return right.double() / batch.mask.sum().clamp(min=1)
