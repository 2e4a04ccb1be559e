"""The decomposition of an automaton drawn as a tower: the states that remain possible, level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sandlab.figures import new, style
from sandlab.worlds.automata.algebra.holonomy import Component, Holonomy
from sandlab.worlds.automata.machine import Automaton

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_tower"]

MOST_TILES = 6
# In inches: a letter of the labels, a tile, the gap between components, the distance between levels.
_LETTER, _TILE, _GAP, _LEVEL = 0.072, 0.26, 0.3, 1.0
_RESET, _TURNED = "#eef3f7", "#fbe3c0"


def draw_tower(machine: Automaton, axis: Axes | None = None, title: str = "") -> Figure:
    """The holonomy decomposition: a row of tiles per component, the highest level on top.

    A component's tiles are the sets among which it decides; an arrow leads from a tile to the component that decides
    inside it. Blue components are only ever reset, orange ones are also permuted by the group that is named.
    """
    form = machine.decomposition
    rows = [[c for c in form.components if c.level == level] for level in range(form.levels, 0, -1)]
    labels = [_labels(machine, component) for component in form.components]
    widths = [sum(_width(label) for label in each) for each in labels]
    number = {id(component): index for index, component in enumerate(form.components)}
    across = max((sum(widths[number[id(c)]] + _GAP for c in row) for row in rows), default=2.0)
    with style():
        if axis is None:
            _, (axis,) = new(width=1.0 + max(across, 2.4), height=0.6 + _LEVEL * max(1, form.levels))
        middles: dict[int, tuple[float, float]] = {}
        for depth, row in enumerate(rows):
            y = -depth * _LEVEL
            left = (across - sum(widths[number[id(c)]] + _GAP for c in row) + _GAP) / 2
            axis.text(-0.25, y, f"level {form.levels - depth}", ha="right", va="center", color="#555555")
            for component in row:
                index = number[id(component)]
                _draw_component(axis, machine, component, labels[index], (left, y))
                middles[index] = (left + widths[index] / 2, y)
                left += widths[index] + _GAP
        _draw_arrows(axis, form, labels, widths, middles)
        axis.set(xlim=(-0.95, across + 0.1), ylim=(-_LEVEL * (max(1, form.levels) - 1) - 0.5, 0.55))
        axis.set_title(title or f"{form.levels} levels that permute or reset", loc="left", fontweight="bold")
        axis.axis("off")
    return axis.figure  # type: ignore[return-value]


def _labels(machine: Automaton, component: Component) -> list[str]:
    """The tiles as sets of states; those that do not fit are counted."""
    shown = component.tiles if len(component.tiles) <= MOST_TILES else component.tiles[: MOST_TILES - 1]
    words = [_written(machine, tile) for tile in shown]
    return words if len(shown) == len(component.tiles) else [*words, f"+ {len(component.tiles) - len(shown)}"]


def _written(machine: Automaton, number: int) -> str:
    names = machine.names_of_states
    inside = [names[state] for state in np.flatnonzero(machine.decomposition.sets[number])]
    whole = "{" + ", ".join(inside) + "}"
    return whole if len(whole) <= 16 else f"{{{inside[0]}, … {inside[-1]}}}: {len(inside)}"


def _width(label: str) -> float:
    return max(0.5, 0.18 + _LETTER * len(label))


def _draw_component(
    axis: Axes, machine: Automaton, component: Component, labels: list[str], corner: tuple[float, float]
) -> None:
    from matplotlib.patches import Rectangle

    left, y = corner
    group = "" if len(component.group) == 1 else component.group_name
    whole = sum(_width(label) for label in labels)
    axis.text(left, y + _TILE / 2 + 0.05, _written(machine, component.representative), va="bottom", fontsize=7.5)
    words = f"{group} and resets" if group else "resets"
    axis.text(left + whole, y + _TILE / 2 + 0.05, words, ha="right", va="bottom", fontsize=7.5, color="#8a5a00")
    for label in labels:
        width = _width(label)
        shade = _TURNED if group else _RESET
        axis.add_patch(Rectangle((left, y - _TILE / 2), width, _TILE, facecolor=shade, edgecolor="#555555"))
        axis.text(left + width / 2, y, label, ha="center", va="center", fontsize=7.5)
        left += width


def _draw_arrows(
    axis: Axes, form: Holonomy, labels: list[list[str]], widths: list[float], middles: dict[int, tuple[float, float]]
) -> None:
    for index, (middle, y) in middles.items():
        left = middle - widths[index] / 2
        for label, tile in zip(labels[index], form.components[index].tiles):
            goal = int(form.component[tile])
            width = _width(label)
            if goal >= 0 and not label.startswith("+"):
                x, below = middles[goal]
                begin, end = (left + width / 2, y - _TILE / 2), (x, below + _TILE / 2 + 0.2)
                axis.annotate("", end, begin, arrowprops={"arrowstyle": "->", "color": "#888888", "lw": 0.8})
            left += width
