"""Small error rates: streamed over millions of targets, with exact confidence intervals that resolve 1e-5."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn

from sandlab.errors import integer, number, require
from sandlab.learning.population import one_or_many
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = [
    "ErrorCurve",
    "ErrorRate",
    "best_so_far",
    "error_curve",
    "errors_by",
    "exact_interval",
    "tail_error",
    "wrong_targets",
]


@dataclass(frozen=True)
class ErrorRate:
    """Errors among counted targets, with an exact confidence interval: zero errors still have an upper end."""

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
    """Clopper–Pearson interval of an error rate."""
    integer("count", count, low=1)
    integer("errors", errors, low=0, high=count)
    number("confidence", confidence, low=0.0, high=1.0)
    found = stats.binomtest(errors, count).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def wrong_targets(model: nn.Module, batch: Batch, *, among: slice | None = None) -> Tensor:
    """Where the most likely class is not the target, of the mask's shape (a population's member axis first).

    `among` restricts the comparison to some classes, such as the symbols of a flip-flop.
    """
    with evaluating(model), torch.no_grad():
        scores = log_predictions(model, batch)
    first = 0
    if among is not None:
        scores, first = scores[..., among], among.start or 0
    return (scores.argmax(-1) + first != batch.targets) & batch.mask


def _only(rates: list[ErrorRate]) -> ErrorRate:
    return rates[0]


@register("lenses")
@one_or_many(_only)
def tail_error(
    model: nn.Module,
    world: World,
    *,
    targets: int = 100_000,
    rng: torch.Generator,
    chunk: int = 128,
    among: slice | None = None,
) -> list[ErrorRate]:
    """Error rate over at least `targets` counted targets, streamed `chunk` examples at a time.

    Only two numbers are kept: 10⁷ targets take no more memory than one chunk. A population has one rate per member, all
    on the same examples.
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
    return [ErrorRate(int(each), count) for each in torch.atleast_1d(torch.as_tensor(errors))]


@dataclass(frozen=True)
class ErrorCurve:
    """Errors among counted targets in bins [edge_i, edge_{i+1}) of a feature; a population's member axis first."""

    edges: np.ndarray
    errors: np.ndarray
    counts: np.ndarray
    confidence: float = 0.95

    @property
    def rates(self) -> np.ndarray:
        """Errors over counts; NaN for an empty bin."""
        return self.errors / np.where(self.counts, self.counts, np.nan)

    @property
    def intervals(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the exact interval of every rate: [0, 1e-5) after 4·10⁵ targets without an error."""
        counts = np.broadcast_to(self.counts, self.errors.shape)
        tail = (1 - self.confidence) / 2
        with np.errstate(invalid="ignore"):
            low = np.where(self.errors > 0, stats.beta.ppf(tail, self.errors, counts - self.errors + 1), 0.0)
            high = np.where(self.errors < counts, stats.beta.ppf(1 - tail, self.errors + 1, counts - self.errors), 1.0)
        return low, high


@register("lenses")
def error_curve(
    model: nn.Module,
    world: World,
    feature: Callable[[Batch], Tensor],
    edges: Sequence[float] | np.ndarray,
    *,
    targets: int = 100_000,
    rng: torch.Generator,
    chunk: int = 128,
) -> ErrorCurve:
    """Error rate against a feature of the targets, streamed like `tail_error`: only two numbers per bin are kept.

    `feature(batch)` has the mask's shape (distance to the latest write, position, number of ones, …). Targets whose
    feature lies outside of the edges count towards `targets` only.
    """
    integer("targets", targets, low=1)
    bins = torch.as_tensor(np.asarray(edges, dtype=np.float64), device=rng.device)
    require(len(bins) >= 2, "edges", list(edges), "at least two numbers")
    cells = len(bins) + 1  # the first and the last lie outside of the edges
    counts: Tensor = torch.zeros(cells, dtype=torch.long, device=rng.device)
    errors: Tensor | int = 0
    seen = 0
    while seen < targets:
        batch = world.sample(chunk, rng=rng)
        cell = torch.bucketize(feature(batch).double(), bins, right=True).flatten()
        mask = batch.mask.flatten().long()
        counted = int(mask.sum())
        require(counted > 0, "world", type(world).__name__, "one whose examples have counted targets")
        wrong = wrong_targets(model, batch).flatten(-batch.mask.ndim).long()
        counts = counts.index_add(0, cell, mask)
        errors = errors + torch.zeros(*wrong.shape[:-1], cells, dtype=torch.long, device=rng.device).index_add(
            -1, cell, wrong
        )
        seen += counted
    inside = slice(1, cells - 1)
    total = torch.as_tensor(errors)
    return ErrorCurve(bins.cpu().numpy(), total[..., inside].cpu().numpy(), counts[inside].cpu().numpy())


@register("lenses")
def errors_by(wrong: Tensor, mask: Tensor, feature: Tensor, edges: np.ndarray) -> list[dict[str, float]]:
    """Error rate in bins [edge_i, edge_{i+1}) of a feature of the mask's shape; empty bins are left out."""
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
    """Running minimum along the last axis: the error with ideal early stopping."""
    return np.minimum.accumulate(np.asarray(errors, dtype=float), axis=-1)
