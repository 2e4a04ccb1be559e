"""How far a model's predictions are from those of a known estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import BadInput, choice, nearest
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["distance_by_position", "distances_to_estimators", "divergence", "estimators"]

Estimator: TypeAlias = Callable[[Batch], Tensor]
"""A function from a batch to log-probabilities."""


def estimators(world: World) -> dict[str, Estimator]:
    """The known predictors of this world: its oracle, then its named baselines."""
    return {"oracle": world.oracle, **world.baselines()}


def divergence(truth: Tensor, model: Tensor, kind: str = "kl") -> Tensor:
    """Divergence between distributions given as log-probabilities over the last axis.

    "kl"              KL(truth ‖ model) = Σ_s p(s) (log p(s) − log f(s))
    "reverse-kl"      KL(model ‖ truth)
    "total-variation" ½ Σ_s |p(s) − f(s)|
    """
    choice("kind", kind, ("kl", "reverse-kl", "total-variation"))
    if kind == "total-variation":
        return 0.5 * (truth.exp() - model.exp()).abs().sum(-1)
    p, f = (model, truth) if kind == "reverse-kl" else (truth, model)
    weight = p.exp()
    # 0 · log 0 = 0: a class that p excludes costs nothing.
    return torch.where(weight > 0, weight * (p - f), 0.0).sum(-1)


@register("lenses")
def distance_by_position(
    model: nn.Module, world: World, batch: Batch, *, to: str | Estimator = "oracle", kind: str = "kl"
) -> Float[Tensor, "*member time"]:
    """Mean distance over the batch between the model's predictions and an estimator's, position by position.

    `to` is "oracle", one of the world's baselines ("unigram", ...) or a function from a batch to log-probabilities;
    `kind` is "kl" (KL(estimator ‖ model), in nats), "reverse-kl" or "total-variation". A position that no
    example counts gives nan.
    """
    with evaluating(model), torch.no_grad():
        predicted = log_predictions(model, batch).double()
        truth = _estimate(world, batch, to).to(predicted)
        distance = divergence(truth, predicted, kind)
    counted = batch.mask
    return torch.where(counted, distance, 0.0).sum(-counted.ndim) / counted.sum(0)


@register("lenses")
def distances_to_estimators(model: nn.Module, world: World, batch: Batch, *, kind: str = "kl") -> dict[str, Tensor]:
    """Mean distance of the model's predictions to each known estimator of the world, over all counted targets.

    The smallest names what the model computes at this moment of its training: uniform, unigram, bigram, ...
    """
    with evaluating(model), torch.no_grad():
        predicted = log_predictions(model, batch).double()
        found = {}
        for name in estimators(world):
            distance = divergence(_estimate(world, batch, name).to(predicted), predicted, kind)
            total = torch.where(batch.mask, distance, 0.0).flatten(-batch.mask.ndim).sum(-1)
            found[name] = total / batch.mask.sum().clamp(min=1)
    return found


def _estimate(world: World, batch: Batch, to: str | Estimator) -> Tensor:
    if callable(to):
        return _cut(to(batch), batch)
    known = estimators(world)
    if to not in known:
        raise BadInput(f"no estimator called {to!r}: {nearest(to, known) or f'there are {sorted(known)}'}")
    return _cut(known[to](batch), batch)


def _cut(log_probs: Tensor, batch: Batch) -> Tensor:
    return log_probs[..., -batch.mask.shape[-1] :, :] if batch.mask.ndim >= 2 else log_probs
