"""Error rates that are tiny or zero: streamed over millions of targets, with intervals that can resolve 1e-5."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn

from sandlab.errors import integer, number, require
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.registry import register
from sandlab.worlds.base import Batch

__all__ = ["ErrorRate", "best_so_far", "errors_by", "exact_interval", "tail_error", "wrong_targets"]


@dataclass(frozen=True)
class ErrorRate:
    """Errors among counted targets, with an exact interval of the rate: zero errors still have an upper end."""

    errors: int
    count: int
    confidence: float = 0.95

    @property
    def rate(self) -> float:
        return self.errors / self.count

    @property
    def interval(self) -> tuple[float, float]:
        return exact_interval(self.errors, self.count, self.confidence)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.rate:.3g} ({self.errors} of {self.count}, between {low:.2g} and {high:.2g})"


def exact_interval(errors: int, count: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper–Pearson: the rates that would not make this number of errors surprising."""
    integer("count", count, low=1)
    integer("errors", errors, low=0, high=count)
    number("confidence", confidence, low=0.0, high=1.0)
    found = stats.binomtest(errors, count).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def wrong_targets(model: nn.Module, batch: Batch, *, among: slice | None = None) -> Tensor:
    """Where the model's likeliest class is not the target, of the mask's shape (a population's member axis first).

    `among` restricts the choice to some classes (only the symbols of a flip-flop, say).
    """
    with evaluating(model), torch.no_grad():
        scores = log_predictions(model, batch)
    first = 0
    if among is not None:
        scores, first = scores[..., among], among.start or 0
    return (scores.argmax(-1) + first != batch.targets) & batch.mask


@register("lenses", "tail-error")
def tail_error(
    model: nn.Module,
    world: Any,
    *,
    targets: int = 100_000,
    rng: torch.Generator,
    chunk: int = 128,
    among: slice | None = None,
) -> ErrorRate | list[ErrorRate]:
    """Share of wrong answers over at least `targets` counted targets, streamed `chunk` examples at a time.

    Nothing but two numbers is kept, so 10⁷ targets take no more memory than one chunk. A population gives one rate per
    member, all on the same examples.
    """
    integer("targets", targets, low=1)
    integer("chunk", chunk, low=1)
    errors: Tensor | int = 0
    count = 0
    while count < targets:
        batch = world.sample(chunk, rng=rng)
        counted = int(batch.mask.sum())
        require(counted > 0, "world", type(world).__name__, "one whose examples have counted targets")
        errors = errors + wrong_targets(model, batch, among=among).flatten(-batch.mask.ndim).sum(-1)
        count += counted
    total = torch.as_tensor(errors)
    if total.ndim == 0:
        return ErrorRate(int(total), count)
    return [ErrorRate(int(each), count) for each in total]


@register("lenses", "errors-by")
def errors_by(wrong: Tensor, mask: Tensor, feature: Tensor, edges: np.ndarray) -> list[dict[str, float]]:
    """Error rate in bins of a feature of the targets (distance to the latest write, number of ones, position, ...).

    `feature` has the mask's shape; bins are [edge_i, edge_{i+1}). Empty bins are left out.
    """
    values, errors = feature[mask].cpu().numpy(), wrong[mask].cpu().numpy()
    rows = []
    for low, high in itertools.pairwise(edges):
        inside = (values >= low) & (values < high)
        if inside.any():
            found = ErrorRate(int(errors[inside].sum()), int(inside.sum()))
            rows.append(
                {
                    "from": float(low),
                    "to": float(high),
                    "rate": found.rate,
                    "low": found.interval[0],
                    "high": found.interval[1],
                    "count": found.count,
                }
            )
    return rows


def best_so_far(errors: np.ndarray) -> np.ndarray:
    """Running minimum along a run (last axis): the best model that early stopping could have kept."""
    return np.minimum.accumulate(np.asarray(errors, dtype=float), axis=-1)
