"""Drawings of the chapter's structures: a derivation, a decision tree of parities, the rules of a grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandlab import figures
from sandlab.errors import integer
from sandlab.worlds.distillation.derivations import Derivations
from sandlab.worlds.distillation.parities import HierarchicalParity
from sandlab.worlds.distillation.pcfg import PCFG

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_decision_tree", "draw_derivation", "draw_rules"]

Node = tuple[int, float, str]


def draw_derivation(trees: Derivations, index: int = 0, *, most: int = 40) -> Figure:
    """The tree above a sentence (Figure 4.6): non-terminals over the tokens they span; at most `most` tokens."""
    integer("index", index, low=0, high=len(trees.tokens) - 1)
    time = min(int(trees.lengths[index]), most)
    figure, (axis,) = figures.new(width=max(4.6, 0.42 * time), height=3.4)
    above: list[Node] = []
    for layer in range(trees.ends.shape[1]):
        nodes = _nodes(trees, index, layer, time)
        for start, place, name in nodes:
            parent = next((p for p in reversed(above) if p[0] <= start), None)
            if parent is not None:
                axis.plot([parent[1], place], [1 - layer, -layer], color="#8a8d91", linewidth=0.8, linestyle="-")
            _label(axis, place, -layer, name)
        above = nodes
    return _bare(figure, axis)


def _nodes(trees: Derivations, index: int, layer: int, time: int) -> list[Node]:
    """(first token, middle, name) of each node of a layer, cut at `time` tokens."""
    found, start = [], 0
    for place in range(time):
        if bool(trees.ends[index, layer, place]) or place == time - 1:
            found.append((start, (start + place) / 2, trees.symbols[int(trees.ancestors[index, layer, place])]))
            start = place + 1
    return found


def draw_decision_tree(world: HierarchicalParity) -> Figure:
    """The tree of parities (Figure 4.19): each node with its coordinates, −1 to the left, +1 to the right."""
    leaves = world.nodes + 1
    figure, (axis,) = figures.new(width=max(4.6, 0.9 * leaves), height=3.2)
    for node in range(2, 2 * leaves):
        ends = [_spot(each, world.depth) for each in (node // 2, node)]
        axis.plot(*zip(*ends), color="#8a8d91", linewidth=0.9, linestyle="-")
    for node in range(1, 2 * leaves):
        group = world.group(node) if node <= world.nodes else ()
        name = f"x{group[0] + 1}⋯x{group[-1] + 1}" if group else f"class {node - leaves + 1}"
        _label(axis, *_spot(node, world.depth), name)
    return _bare(figure, axis)


def _spot(node: int, depth: int) -> tuple[float, float]:
    level = node.bit_length() - 1
    return (node - 2**level + 0.5) * 2 ** (depth - level), float(-level)


def draw_rules(rules: PCFG) -> Figure:
    """The rules of a grammar, a column for each height (Figure 4.23)."""
    heights = rules.heights
    columns = sorted({heights[symbol] for symbol in rules.by_symbol}, reverse=True)
    figure, (axis,) = figures.new(width=1.9 * len(columns), height=2.6)
    for place, height in enumerate(columns):
        lines = [
            f"{symbol} → {' '.join(rule.children)}"
            for symbol in rules.by_symbol
            if heights[symbol] == height
            for rule in rules.by_symbol[symbol]
        ]
        axis.text(place, 0, "\n".join(lines), fontsize=7, va="top", family="monospace")
    axis.set(xlim=(-0.1, len(columns)), ylim=(-1, 0.1))
    return _bare(figure, axis)


def _label(axis: Axes, x: float, y: float, text: str) -> None:
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
    axis.text(x, y, text, ha="center", va="center", fontsize=7, bbox=box)


def _bare(figure: Figure, axis: Axes) -> Figure:
    axis.set_axis_off()
    figure.set_layout_engine("none")
    return figure
