"""Stage-wise learning: plateaus of a loss curve, what the model computes on each, and where its heads attend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import integer, number, require
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.ngrams.in_context import InContextNgrams

__all__ = [
    "NearestEstimator",
    "Plateau",
    "Stages",
    "half_way",
    "head_lag_mass",
    "name_plateaus",
    "named_stages",
    "nearest_lag_set",
    "plateau_levels",
    "plateaus",
    "steepest_drop",
]


@dataclass(frozen=True)
class Plateau:
    """An interval of steps on which the loss hardly moves, its loss, and its name."""

    start: int
    stop: int
    loss: float
    name: str = ""


@register("lenses")
def plateaus(
    steps: Sequence[int] | np.ndarray,
    loss: Sequence[float] | np.ndarray,
    *,
    shortest: float = 0.05,
    flatness: float = 0.25,
    resolution: float = 0.03,
    points: int = 300,
) -> list[Plateau]:
    """The intervals on which a loss curve hardly moves, found from the curve alone.

    The curve (averaged down to `points` values) is fitted by a piecewise constant: the partition that minimises
    Σ (loss − mean of its segment)² + λ · segments, found exactly by dynamic programming, with λ from the noise of
    neighbouring values and from `resolution`, the smallest drop worth seeing as a share of the total drop. A plateau is
    the longest part of a segment whose slope is below `flatness` of the mean slope of the whole curve, if it covers at
    least `shortest` of the steps (the ends of a segment may belong to the drop next to it); neighbours closer than
    `resolution` are merged.
    """
    number("shortest", shortest, low=0.0, high=1.0)
    number("flatness", flatness, low=0.0)
    steps, curve = np.asarray(steps, dtype=float), np.asarray(loss, dtype=float)
    require(len(steps) == len(curve) and len(curve) >= 8, "loss", len(curve), "at least 8 values, one per step")
    steps, curve = _blocks(steps, points), _blocks(curve, points)
    drop, span = float(np.quantile(curve, 0.98) - np.quantile(curve, 0.02)), steps[-1] - steps[0]
    if drop <= 0:
        return [Plateau(int(steps[0]), int(steps[-1]), float(curve.mean()))]
    noise = float(np.median(np.abs(np.diff(curve)))) / 0.954  # of one value, if neighbours differ by noise only
    price = 3 * noise**2 * np.log(len(curve)) + 0.5 * shortest * len(curve) * (resolution * drop) ** 2
    found = []
    for first, last in _partition(curve, price):
        part = _flat_part(steps[first : last + 1], curve[first : last + 1], flatness * drop / span, shortest * span)
        if part is not None:
            inside = slice(first + part[0], first + part[1] + 1)
            middle = float(np.median(curve[inside]))
            found.append(Plateau(int(steps[inside][0]), int(steps[inside][-1]), middle))
    return _merged(found, resolution * drop)


def name_plateaus(found: Sequence[Plateau], levels: Mapping[str, float]) -> list[Plateau]:
    """Name each plateau after the estimator whose loss is nearest to it."""
    return [
        Plateau(each.start, each.stop, each.loss, min(levels, key=lambda name: abs(levels[name] - each.loss)))
        for each in found
    ]


@dataclass(frozen=True)
class Stages:
    """The plateaus of one loss curve, in order, and its whole drop."""

    found: list[Plateau]
    drop: float = 0.0

    @property
    def last(self) -> Plateau:
        return self.found[-1]

    @property
    def early(self) -> Plateau | None:
        """The longest plateau clearly above the last one: by 0.02 nats and by a fifth of the curve's whole drop.

        The second condition tells a stage from the shoulder after a jump.
        """
        higher = [each for each in self.found if each.loss > self.last.loss + max(0.02, 0.2 * self.drop)]
        return max(higher, key=lambda each: each.stop - each.start, default=None)


def named_stages(steps: np.ndarray, loss: np.ndarray, names: np.ndarray) -> Stages:
    """The plateaus of a loss curve, each with the name (one per value of the loss) that is most frequent on it."""
    found = []
    for each in plateaus(steps, loss):
        inside = names[(steps >= each.start) & (steps <= each.stop)]
        found.append(replace(each, name=Counter(inside.tolist()).most_common(1)[0][0]))
    whole = Plateau(int(steps[0]), int(steps[-1]), float(loss.mean()), "none")
    return Stages(found or [whole], float(np.quantile(loss, 0.98) - np.quantile(loss, 0.02)))


def plateau_levels(steps: np.ndarray, loss: np.ndarray, gap: float = 0.02) -> int:
    """How many levels of plateaus, more than `gap` apart, lie above the lowest plateau."""
    losses = sorted(each.loss for each in plateaus(steps, loss))
    return sum(higher - lower > gap for lower, higher in pairwise(losses))


def half_way(steps: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """First step at which half of the drop after the first tenth of each curve (rows) is done; NaN without a drop."""
    begin = len(steps) // 10
    later = losses[:, begin:]
    reached = later <= (later[:, :1] + later[:, -1:]) / 2
    return np.where(later[:, 0] > later[:, -1], steps[begin:][reached.argmax(1)], np.nan)


def steepest_drop(loss: np.ndarray, norm: np.ndarray) -> tuple[float, float]:
    """The steepest tenth of a loss curve after its first tenth, and the gradient norm there.

    Returns the largest norm around it over the median before it, and its share of the drop after the first tenth.
    """
    tenth = len(loss) // 10
    window = max(2, tenth)
    drops = loss[tenth:-window] - loss[tenth + window :]
    start = tenth + int(drops.argmax())
    around = norm[max(start - 1, 0) : start + window + 1].max()
    before = np.median(norm[tenth : max(start, tenth + 2)])
    return float(around / before), float(drops.max() / max(loss[tenth] - loss[-1], 1e-9))


@register("lenses")
def head_lag_mass(
    pattern: Float[Tensor, "*lead head query key"], largest: int, *, skip: int
) -> Float[Tensor, "*lead head lag"]:
    """μ_h(l): mean over queries i ≥ skip of the attention of head h on position i − l, l = 0 … largest."""
    integer("largest", largest, low=0)
    integer("skip", skip, low=0)
    time = pattern.shape[-1]
    lags = []
    for lag in range(largest + 1):
        diagonal = pattern.diagonal(offset=-lag, dim1=-2, dim2=-1)
        lags.append(diagonal[..., max(skip - lag, 0) :].mean(-1) if lag < time else pattern[..., 0, 0] * 0)
    return torch.stack(lags, -1)


@dataclass(frozen=True)
class NearestEstimator:
    """The counting estimator nearest to a model's predictions, one entry per member.

    name       of the nearest estimator; distance: E‖p_θ − p̂‖₁ to it
    distances  name → distance to that set of lags at its best smoothing
    """

    name: list[str]
    distance: np.ndarray
    distances: dict[str, np.ndarray]


@register("lenses")
def nearest_lag_set(
    model: nn.Module, world: InContextNgrams, batch: Batch, *, smoothings: Sequence[float] = (0.0, 0.25, 0.5, 1.0, 2.5)
) -> NearestEstimator:
    """Which counting estimator the model's predictions are nearest to, over all sets of lags and a grid of β.

    Distance E‖p_θ − p̂_{N,β}‖₁, for each member of a population.
    """
    with evaluating(model), torch.no_grad():
        predicted = log_predictions(model, batch).double().exp()
    predicted = predicted.unsqueeze(0) if predicted.ndim == batch.mask.ndim + 1 else predicted
    distances: dict[str, np.ndarray] = {}
    last_only = batch.mask.shape[-1] == 1
    for smoothing in smoothings:
        for name, estimate in world.subsets(smoothing).items():
            read = estimate.last_probabilities if last_only else estimate.probabilities
            probs = read(batch.inputs).reshape(*batch.mask.shape, -1).to(predicted)
            distance = (predicted - probs).abs().sum(-1)[:, batch.mask].mean(-1).cpu().numpy()
            distances[name] = np.minimum(distances.get(name, np.inf), distance)
    names = list(distances)
    table = np.stack([distances[name] for name in names])
    return NearestEstimator([names[index] for index in table.argmin(0)], table.min(0), distances)


def _blocks(values: np.ndarray, points: int) -> np.ndarray:
    """Means of equal blocks, at most `points` of them."""
    size = max(1, len(values) // points)
    return values[: len(values) // size * size].reshape(-1, size).mean(1)


def _partition(curve: np.ndarray, price: float) -> list[tuple[int, int]]:
    """The piecewise-constant fit of least Σ (value − mean)² + price · pieces, as (first, last) of each piece."""
    count = len(curve)
    sums = np.concatenate([[0.0], np.cumsum(curve - curve.mean())])
    squares = np.concatenate([[0.0], np.cumsum((curve - curve.mean()) ** 2)])
    best, before = np.zeros(count + 1), np.zeros(count + 1, dtype=int)
    for stop in range(1, count + 1):
        starts = np.arange(stop)
        inside = squares[stop] - squares[starts] - (sums[stop] - sums[starts]) ** 2 / (stop - starts)
        total = best[starts] + inside + price
        before[stop] = int(total.argmin())
        best[stop] = total[before[stop]]
    pieces, stop = [], count
    while stop:
        pieces.append((int(before[stop]), stop - 1))
        stop = int(before[stop])
    return pieces[::-1]


def _flat_part(steps: np.ndarray, curve: np.ndarray, steepest: float, shortest: float) -> tuple[int, int] | None:
    """First and last value of the longest stretch with a least-squares slope of at most `steepest`, if long enough."""
    x, y = steps - steps.mean(), curve - curve.mean()
    sums = [np.concatenate([[0.0], np.cumsum(part)]) for part in (np.ones_like(x), x, y, x * x, x * y)]
    # Of every stretch at once: rows are first values, columns last values.
    n, sx, sy, sxx, sxy = (total[None, 1:] - total[:-1, None] for total in sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (n * sxy - sx * sy) / (n * sxx - sx * sx)
    length = steps[None, :] - steps[:, None]
    flat = (n > 1) & (length >= shortest) & (np.abs(slope) <= steepest)
    if not flat.any():
        return None
    first, last = np.unravel_index(np.where(flat, length, -1.0).argmax(), length.shape)
    return int(first), int(last)


def _merged(found: list[Plateau], tolerance: float) -> list[Plateau]:
    merged: list[Plateau] = []
    for each in found:
        if merged and abs(merged[-1].loss - each.loss) < tolerance:
            last = merged[-1]
            weights = [last.stop - last.start, each.stop - each.start]
            merged[-1] = Plateau(last.start, each.stop, float(np.average([last.loss, each.loss], weights=weights)))
        else:
            merged.append(each)
    return merged
