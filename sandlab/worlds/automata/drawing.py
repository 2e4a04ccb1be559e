"""Pictures of automata: state diagrams, Cayley graphs, multiplication tables, the cube."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from sandlab.errors import BadInput
from sandlab.figures import COLOURS, heatmap, new, style
from sandlab.worlds.automata.algebra.semigroups import Semigroup
from sandlab.worlds.automata.counters import Grid, GridProduct
from sandlab.worlds.automata.machine import Automaton
from sandlab.worlds.automata.rubik import RUBIK_TURNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

__all__ = [
    "draw_cayley_graph",
    "draw_machine",
    "draw_multiplication_table",
    "draw_rubik_net",
]

MOST_NODES = 130


def draw_machine(machine: Automaton, axis: Axes | None = None, title: str = "") -> Figure:
    """The state diagram: circles for states (a thick rim for the start, two rims for accepting), arrows for letters."""
    if machine.states > MOST_NODES:
        raise BadInput(f"a diagram of {machine.states} states cannot be read: at most {MOST_NODES}")
    points = _layout(machine)
    figure, axis = _panel(axis, points)
    edges: dict[tuple[int, int], list[str]] = {}
    # Letters that fix every state would only add a loop everywhere.
    idle = [letter for letter, row in enumerate(machine.maps) if (row == np.arange(machine.states)).all()]
    for state, row in enumerate(machine.transitions):
        for letter, following in enumerate(row):
            if letter not in idle:
                edges.setdefault((state, following), []).append(machine.letters[letter])
    _draw_edges(axis, points, {pair: (_shorten(names), "#555555") for pair, names in edges.items()})
    names = machine.names_of_states
    for state, (x, y) in enumerate(points):
        width = 2.6 if state == machine.start else 1.0
        _node(axis, x, y, names[state], COLOURS[0], width)
        if machine.accepting and state in machine.accepting:
            axis.scatter([x], [y], s=250, facecolors="none", edgecolors=COLOURS[0], linewidths=0.9, zorder=4)
    stays = f"; {', '.join(machine.letters[letter] for letter in idle)} stays" if idle else ""
    _title(axis, title or f"{type(machine).__name__}: {machine.states} states, {machine.alphabet} letters{stays}")
    return figure


def draw_cayley_graph(
    semigroup: Semigroup, axis: Axes | None = None, title: str = "", letters: Sequence[str] = ()
) -> Figure:
    """Elements as points, one colour of arrows per letter: from e to "e, then the letter". The identity is yellow."""
    if len(semigroup) > MOST_NODES:
        raise BadInput(f"a Cayley graph of {len(semigroup)} elements cannot be read: at most {MOST_NODES}")
    points = _spread(semigroup)
    figure, axis = _panel(axis, points)
    for letter in range(semigroup.right.shape[1]):
        pairs = {(e, int(f)): ("", COLOURS[letter % len(COLOURS)]) for e, f in enumerate(semigroup.right[:, letter])}
        _draw_edges(axis, points, pairs, bend=0.12 + 0.06 * letter)
        axis.plot(
            [], [], color=COLOURS[letter % len(COLOURS)], label=letters[letter] if letters else f"letter {letter}"
        )
    sizes = 60 if len(semigroup) > 30 else 130
    axis.scatter(*points.T, s=sizes, color="white", edgecolors="#222222", zorder=3)
    for element, (x, y) in enumerate(points):
        if len(semigroup) <= 30:
            axis.text(x, y, str(element), ha="center", va="center", fontsize=7, zorder=4)
    if semigroup.has_identity:
        axis.scatter(*points[semigroup.identity], s=sizes, color="#ffd97d", edgecolors="#222222", zorder=3.5)
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    _title(axis, title or f"Cayley graph: {len(semigroup)} elements")
    return figure


def draw_multiplication_table(semigroup: Semigroup, axis: Axes | None = None, title: str = "") -> Figure:
    """products[e, f], first e then f, as colours."""
    with style():
        if axis is None:
            _, (axis,) = new(width=4.2, height=3.6)
        heatmap(axis, semigroup.products, title=title or "first row, then column", x="then", y="first", bar=False)
    return axis.figure  # type: ignore[return-value]


def draw_rubik_net(axis: Axes | None = None, turn: str | None = None) -> Figure:
    """The 48 stickers on the unfolded cube; with a turn, arrows show where it carries them."""
    with style():
        if axis is None:
            _, (axis,) = new(width=6.4, height=4.8)
        corners = {"U": (3, 6), "L": (0, 3), "F": (3, 3), "R": (6, 3), "B": (9, 3), "D": (3, 0)}
        where = {}
        for face, (left, bottom) in enumerate(corners.values()):
            cells = [(column, row) for row in (2, 1, 0) for column in (0, 1, 2)]
            cells.remove((1, 1))
            for number, (column, row) in enumerate(cells):
                where[8 * face + number + 1] = (left + column + 0.5, bottom + row + 0.5)
            axis.text(left + 1.5, bottom + 1.5, list(corners)[face], ha="center", va="center", fontweight="bold")
        for sticker, (x, y) in where.items():
            axis.add_patch(_square(x, y))
            axis.text(x, y, str(sticker), ha="center", va="center", fontsize=7)
        for cycle in RUBIK_TURNS.get(turn or "", []):
            for origin, goal in zip(cycle, cycle[1:] + cycle[:1]):
                axis.annotate(
                    "",
                    where[goal],
                    where[origin],
                    arrowprops={"arrowstyle": "->", "color": COLOURS[1], "connectionstyle": "arc3,rad=0.25"},
                )
        axis.set(xlim=(-0.2, 12.2), ylim=(-0.2, 9.2), aspect="equal")
        _title(axis, f"Rubik's cube, turn {turn}" if turn else "Rubik's cube: 48 stickers that move")
        axis.axis("off")
    return axis.figure  # type: ignore[return-value]


def _square(x: float, y: float) -> Rectangle:
    from matplotlib import patches

    return patches.Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, facecolor="#eef3f7", edgecolor="#8a8d91")


def _layout(machine: Automaton) -> Float[np.ndarray, "state 2"]:
    """Walks on a line or a grid as such; everything else on a circle."""
    if isinstance(machine, Grid):
        return np.column_stack([np.arange(machine.states), np.zeros(machine.states)]) * 1.4
    if isinstance(machine, GridProduct) and len(machine.sizes) == 2:
        return np.array([(y, -x) for x, y in np.ndindex(*machine.sizes)], dtype=float) * 1.5
    return _circle(machine.states)


def _circle(count: int) -> Float[np.ndarray, "point 2"]:
    angle = math.pi / 2 - 2 * math.pi * np.arange(count) / max(count, 1)
    return np.column_stack([np.cos(angle), np.sin(angle)]) * max(1.0, count / 4.5)


def _spread(semigroup: Semigroup) -> Float[np.ndarray, "element 2"]:
    """A force-directed layout of the Cayley graph, the same every time."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(semigroup)))
    graph.add_edges_from((e, int(f)) for e, row in enumerate(semigroup.right) for f in row if e != f)
    laid = nx.kamada_kawai_layout(graph) if nx.is_connected(graph) else nx.spring_layout(graph, seed=0)
    return np.array([laid[element] for element in range(len(semigroup))]) * math.sqrt(len(semigroup)) * 0.9


def _panel(axis: Axes | None, points: np.ndarray) -> tuple[Figure, Axes]:
    low, high = points.min(0) - 0.75, points.max(0) + 0.75
    if axis is None:
        span = high - low
        with style():
            _, (axis,) = new(
                width=float(np.clip(0.85 * span[0], 3.2, 9)), height=float(np.clip(0.85 * span[1], 2.0, 8))
            )
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    axis.axis("off")
    return axis.figure, axis  # type: ignore[return-value]


def _title(axis: Axes, text: str) -> None:
    axis.set_title(text, loc="left", fontweight="bold", fontsize=10.5)


def _node(axis: Axes, x: float, y: float, name: str, colour: str, width: float) -> None:
    axis.scatter([x], [y], s=420, color="white", edgecolors=colour, linewidths=width, zorder=3)
    axis.text(x, y, name, ha="center", va="center", fontsize=8 if len(name) <= 3 else 6.5, zorder=5)


def _draw_edges(
    axis: Axes, points: np.ndarray, edges: dict[tuple[int, int], tuple[str, str]], bend: float = 0.18
) -> None:
    for (origin, goal), (label, colour) in edges.items():
        if origin == goal:
            _loop(axis, points[origin], _outwards(points, origin), label, colour)
            continue
        arrow = {"arrowstyle": "-|>", "color": colour, "lw": 0.9, "shrinkA": 11, "shrinkB": 11}
        arrow["connectionstyle"] = f"arc3,rad={bend}"
        axis.annotate("", points[goal], points[origin], arrowprops=arrow, zorder=2)
        if label:
            step = points[goal] - points[origin]
            middle = (points[goal] + points[origin]) / 2 + bend * 0.62 * np.array([step[1], -step[0]])
            _label(axis, middle, label, colour)


def _outwards(points: np.ndarray, index: int) -> np.ndarray:
    """The direction that is free of other points: away from the middle, along the axes on whose edge the point is."""
    away = points[index] - points.mean(0)
    furthest = np.abs(points - points.mean(0)).max(0)
    away = np.where(np.abs(away) >= 0.75 * furthest, away, 0.0)
    # On a line there is room above every point.
    if np.linalg.norm(away) < 1e-9 or furthest[1] < 1e-9:
        away = np.array([0.0, 1.0])
    return away / np.linalg.norm(away)


def _loop(axis: Axes, point: np.ndarray, away: np.ndarray, label: str, colour: str) -> None:
    """An arrow from a state to itself."""
    side = np.array([-away[1], away[0]])
    begin, end = point + 0.22 * away + 0.16 * side, point + 0.22 * away - 0.16 * side
    arrow = {"arrowstyle": "-|>", "color": colour, "lw": 0.9, "connectionstyle": "arc3,rad=-1.6"}
    axis.annotate("", (end[0], end[1]), (begin[0], begin[1]), arrowprops=arrow, zorder=2)
    if label:
        _label(axis, point + 0.6 * away, label, colour)


def _label(axis: Axes, point: np.ndarray, text: str, colour: str) -> None:
    box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    axis.text(
        float(point[0]), float(point[1]), text, ha="center", va="center", fontsize=7.5, color=colour, bbox=box, zorder=6
    )


def _shorten(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{names[0]}, … ({len(names)})"
