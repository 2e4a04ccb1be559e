"""Heads that detect walls: attention scores on walks between two walls, and their picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import require
from sandlab.registry import register

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["attention_uniformity", "boundary_scores", "draw_boundaries"]


@register("lenses")
def attention_uniformity(pattern: Float[Tensor, "*lead time time"]) -> Float[Tensor, "*lead"]:
    """U = mean over t ≥ 2 of H(α_t)/log t: 1 for a head that averages over the whole prefix, 0 for one that picks."""
    time = pattern.shape[-1]
    require(time >= 2, "time", time, "at least 2")
    entropy = torch.special.entr(pattern.double()).sum(-1)[..., 1:]
    return (entropy / torch.arange(2, time + 1, device=pattern.device).log()).mean(-1)


@register("lenses")
def boundary_scores(
    pattern: Float[Tensor, "*lead example head time time"], states: Int[Tensor, "example time"], walls: tuple[int, int]
) -> dict[str, Float[Tensor, "*lead head wall"]]:
    """How well each head detects each wall of a walk.

    score    share of queries whose largest weight is on a visit of that wall, among the queries with such a visit at
             or before their position
    base     the same share for a head that attends to a uniformly random position of the prefix
    weight   mean attention on visits of that wall, over the same queries; `base` for a head that averages
    leakage  mean attention on positions before the latest visit of that wall

    An ideal detector has score 1 and leakage 0: after a wall nothing before it matters (Liu et al. 2023, figure 6).
    The score of a nearly uniform row says little, because its largest weight may be on a wall by chance; use `weight`.
    """
    time = states.shape[1]
    positions = torch.arange(time, device=states.device)
    chosen = pattern.argmax(-1)
    found: dict[str, list[Tensor]] = {"score": [], "base": [], "weight": [], "leakage": []}
    for wall in walls:
        at_wall = states == wall
        latest = torch.where(at_wall, positions, -1).cummax(1).values
        counted = (latest >= 0).unsqueeze(1)
        hits = at_wall.unsqueeze(1).expand(chosen.shape).gather(-1, chosen)
        share = at_wall.double().cumsum(1) / (positions + 1)
        before = (positions < latest.unsqueeze(-1)).unsqueeze(1)
        attended = (pattern.double() * at_wall[:, None, None]).sum(-1)
        leaked = torch.where(before, pattern.double(), 0.0).sum(-1)
        found["score"].append(_mean_where(hits.double(), counted))
        found["base"].append(_mean_where(share.unsqueeze(1).expand(chosen.shape), counted))
        found["weight"].append(_mean_where(attended, counted))
        found["leakage"].append(_mean_where(leaked, counted))
    return {name: torch.stack(values, -1) for name, values in found.items()}


def _mean_where(values: Float[Tensor, "*lead example head time"], counted: Tensor) -> Float[Tensor, "*lead head"]:
    counted = counted.expand(values.shape)
    return torch.where(counted, values, 0.0).sum((-3, -1)) / counted.sum((-3, -1)).clamp(min=1)


def draw_boundaries(
    axis: Axes, pattern: np.ndarray, states: np.ndarray, walls: tuple[int, int], *, frame: str = "", title: str = ""
) -> None:
    """An attention map whose unused upper triangle shows the walls: white columns for the left one, grey for the right.

    frame  colour of a frame around the map, for heads that detect a wall
    """
    shown = np.sqrt(np.asarray(pattern, dtype=float))  # makes faint weights visible
    time = len(states)
    upper = np.triu(np.ones((time, time), dtype=bool), 1)
    axis.imshow(np.where(upper, np.nan, shown), vmin=0, vmax=1, interpolation="nearest", cmap="magma")
    paint = np.full((time, time), np.nan)
    for value, wall in zip((1.0, 0.6), walls):
        paint[:, states == wall] = value
    background = np.where(np.isnan(paint), 0.25, paint)
    axis.imshow(np.where(upper, background, np.nan), vmin=0, vmax=1, interpolation="nearest", cmap="gray")
    axis.grid(False)
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=8)
    for spine in axis.spines.values():
        spine.set_visible(bool(frame))
        spine.set(color=frame or "none", linewidth=2.5)
