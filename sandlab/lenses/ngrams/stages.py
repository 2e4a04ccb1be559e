"""Stage-wise learning: plateaus of a loss curve, what the model computes on each, and where its heads attend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import integer, number, require
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.ngrams.in_context import InContextNgrams

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.image import AxesImage

__all__ = [
    "AttentionSnapshots",
    "NearestEstimator",
    "Plateau",
    "head_lag_mass",
    "name_plateaus",
    "nearest_lag_set",
    "plateaus",
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


class AttentionSnapshots:
    """A training callback that keeps the attention maps of each evaluation; `save` writes them as an animated GIF.

    >>> snapshots = AttentionSnapshots(probe_tokens, names="layers.0.attention.pattern")
    >>> train(model, world, steps=2000, rng=rng(0), callbacks=[snapshots], every=50)
    >>> snapshots.save("attention.gif")
    """

    def __init__(self, inputs: Tensor, *, names: str = "*attention.pattern") -> None:
        self.inputs, self.names = inputs, names
        self.steps: list[int] = []
        self.frames: dict[str, list[np.ndarray]] = {}

    def __call__(self, step: int, model: nn.Module, metrics: object = None) -> None:
        self.steps.append(step)
        for name, pattern in attention_maps(model, self.inputs, names=self.names).items():
            self.frames.setdefault(name, []).append(pattern.float().cpu().numpy())

    def maps(self, name: str) -> np.ndarray:
        """(evaluation, *member, head, query, key)."""
        return np.stack(self.frames[name])

    def draw(self, *, member: int | None = None, titles: Sequence[str] = ()) -> FuncAnimation:
        """An animation of every recorded head over training."""
        from matplotlib.animation import FuncAnimation

        from sandlab.figures import heatmap, new

        panels = []
        for name in self.frames:
            maps = self.maps(name)
            maps = maps[:, member or 0] if maps.ndim == 5 else maps
            panels += [(f"{name.split('.')[1]}.{head}", maps[:, head]) for head in range(maps.shape[1])]
        figure, axes = new(columns=len(panels), width=2.6, height=2.8)
        for axis, (label, maps) in zip(axes, panels):
            heatmap(axis, maps[0], title=f"layer.head {label}", low=0.0, high=1.0, bar=False)

        def show(index: int) -> list[AxesImage]:
            text = titles[index] if index < len(titles) else f"step {self.steps[index]}"
            figure.suptitle(text, x=0.01, ha="left")
            for axis, (_, maps) in zip(axes, panels):
                axis.images[0].set_data(maps[index])
            return [axis.images[0] for axis in axes]

        return FuncAnimation(figure, show, frames=len(self.steps), interval=120)

    def save(self, path: str | Path, *, member: int | None = None) -> Path:
        """Write the animation as a GIF."""
        from sandlab.figures import save_film

        return save_film(self.draw(member=member), path)


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
