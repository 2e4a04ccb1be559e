"""Pictures of actions and chains: transition graphs, and what an answer reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import nn

from sandlab import figures
from sandlab.lenses.reasoning.concentration import answer_patterns
from sandlab.worlds.reasoning.actions import GroupAction, as_action
from sandlab.worlds.reasoning.clauses import SLOTS
from sandlab.worlds.reasoning.lego import Lego

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_action", "draw_chain", "draw_step"]

Point: TypeAlias = "np.ndarray | tuple[float, float]"


def draw_action(action: str | GroupAction, elements: Sequence[int] | None = None) -> Figure:
    """Values on a circle, an arrow y → g·y for each given element (default: the first two that move something)."""
    given = as_action(action)
    moving = [g for g in range(given.elements) if (given.array[g] != np.arange(given.values)).any()]
    chosen = moving[:2] if elements is None else list(elements)
    figure, (axis,) = figures.new(width=4.2, height=4.0, title=f"{given.name}: where elements take the values")
    turn = 2 * np.pi * np.arange(given.values) / given.values
    places = np.stack([np.cos(turn), np.sin(turn)], 1)
    for colour, element in zip(figures.COLOURS, chosen):
        axis.plot([], [], color=colour, label=f"g{element}")
        for start, end, _ in given.transition_graph([element]).edges:
            _arrow(axis, places[end], places[start], 1.6, colour)
    axis.scatter(*places.T, s=320, color="white", edgecolor="black", zorder=3)
    for value, place in enumerate(places):
        axis.text(place[0], place[1], str(value), ha="center", va="center", zorder=4)
    axis.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
    axis.axis("off")
    axis.legend(loc="lower right")
    return figure


def draw_chain(model: nn.Module, world: Lego, *, step: int = 1, rng: torch.Generator) -> Figure:
    """One chain as text, with arrows from the answer of a step to the clauses it reads, as thick as the attention."""
    batch = world.sample(1, rng=rng)
    row = answer_patterns(model, world, batch)[0, step].cpu().numpy()
    clauses = batch.inputs.view(-1, SLOTS)[: world.predicates + step + 1]
    return draw_step([world.render(clause) for clause in clauses], row[: len(clauses)])


def draw_step(texts: Sequence[str], attention: np.ndarray, title: str = "What an answer reads") -> Figure:
    """Clauses in a row, arrows from the last one as thick as its attention."""
    figure, (axis,) = figures.new(width=1.15 * len(texts) + 1, height=2.4, title=f"{title} (attention as thickness)")
    last = len(texts) - 1
    for place, (text, weight) in enumerate(zip(texts, attention)):
        axis.text(place, 0, text, ha="center", va="top", fontsize=8)
        if weight > 0.02 and place == last:  # a ring: the clause reads itself
            axis.scatter([place], [0.2], s=420, facecolor="none", edgecolor="#0072b2", linewidth=6 * float(weight))
        elif weight > 0.02:
            _arrow(axis, (place, 0.03), (last, 0.03), 6 * float(weight), "#0072b2", rad=0.35)
        if weight > 0.02:
            axis.text(place, 0.5, f"{weight:.2f}", ha="center", fontsize=8)
    axis.set(xlim=(-0.7, last + 0.9), ylim=(-0.25, 1.2))
    axis.axis("off")
    return figure


def _arrow(axis: Axes, end: Point, start: Point, width: float, colour: str, rad: float = 0.18) -> None:
    shape = {"arrowstyle": "->", "linewidth": width, "color": colour, "connectionstyle": f"arc3,rad={rad}"}
    axis.annotate("", (float(end[0]), float(end[1])), (float(start[0]), float(start[1])), arrowprops=shape)
