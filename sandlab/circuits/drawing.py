"""Pictures of circuits: attention drawn as the computation it performs, channels of the stream over a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.figures import COLOURS, heatmap, new, style
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.models.hooks import record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_attention_flow", "draw_channels", "draw_wiring", "trace"]

MOST_TOKENS = 64


def trace(model: TheoryTransformer, word: Int[Tensor, "time"] | Sequence[int]) -> dict[str, list[np.ndarray]]:
    """What every channel of a circuit holds along one word: channel name → one row of values per layer.

    Row 0 is the embedding; anchors precede the word.
    """
    names = model.config.channels
    if not names:
        raise BadInput("this model has no named channels: compile one")
    tokens = torch.as_tensor(word).unsqueeze(0)
    streams = [f"layers.{depth}.resid_post" for depth in range(model.config.layers)]
    with record(model, "embed", *streams) as cache, torch.no_grad():
        model(tokens)
    rows = [cache["embed"][0], *(cache[name][0] for name in streams)]
    return {name: [row[:, channel].cpu().numpy() for row in rows] for channel, name in enumerate(names)}


def draw_attention_flow(
    model: TheoryTransformer, word: Int[Tensor, "time"] | Sequence[int], axis: Axes | None = None, title: str = ""
) -> Figure:
    """Positions from left to right, layers from bottom to top: a line from each position to those it attends to.

    Darkness is the attention weight, colours are heads. In a scan the lines make the tree of doubling windows.
    """
    tokens = torch.as_tensor(word).unsqueeze(0)
    total = tokens.shape[1] + model.config.prefix
    if total > MOST_TOKENS:
        raise BadInput(f"lines between {total} positions cannot be read: take a word with at most {MOST_TOKENS}")
    patterns = attention_patterns(model, tokens[0])
    layers = model.config.layers
    with style():
        if axis is None:
            _, (axis,) = new(width=max(4.6, 0.24 * total), height=1.2 + 0.75 * layers)
        for depth, pattern in enumerate(patterns):
            if pattern is not None:
                _flow(axis, pattern, depth)
        axis.scatter(
            np.tile(np.arange(total), layers + 1), np.repeat(np.arange(layers + 1), total), s=9, color="#222222"
        )
        if model.config.prefix:
            axis.axvspan(-0.5, model.config.prefix - 0.5, color="#f2f2f2", zorder=0)
        ticks = np.arange(model.config.prefix, total)
        axis.set_xticks(ticks, [str(int(token)) for token in tokens[0]], fontsize=7)
        axis.set_yticks(range(layers + 1), ["letters", *[f"layer {depth + 1}" for depth in range(layers)]])
        axis.set(xlim=(-0.7, total - 0.3), title=title or "Attention by layer")
        axis.grid(False)
    return axis.figure  # type: ignore[return-value]


def attention_patterns(
    model: TheoryTransformer, tokens: Int[Tensor, "time"]
) -> list[Float[np.ndarray, "_head query key"] | None]:
    """The patterns of each layer on one word; None where a layer has no heads."""
    names = [f"layers.{depth}.attention.pattern" for depth, heads in enumerate(model.config.heads) if heads]
    with record(model, *names) as cache, torch.no_grad():
        model(tokens.unsqueeze(0))
    every = [f"layers.{depth}.attention.pattern" for depth in range(model.config.layers)]
    return [cache[name][0].cpu().numpy() if name in names else None for name in every]


def _flow(axis: Axes, pattern: np.ndarray, depth: int) -> None:
    from matplotlib.collections import LineCollection

    for head, weights in enumerate(pattern):
        query, key = np.nonzero(weights > 0.02)
        lines = np.array([[(k, depth), (q, depth + 1)] for q, k in zip(query, key)], dtype=float)
        strength = np.clip(weights[query, key], 0.08, 1.0)
        axis.add_collection(
            LineCollection(list(lines), colors=COLOURS[head % len(COLOURS)], alpha=strength, linewidths=1.0)
        )


def draw_channels(
    model: TheoryTransformer, word: Int[Tensor, "time"] | Sequence[int], channels: Sequence[str], title: str = ""
) -> Figure:
    """Chosen channels over the word, one panel each: rows are layers, columns positions."""
    rows = trace(model, word)
    with style():
        figure, axes = new(rows=len(channels), width=7.0, height=0.5 + 0.28 * (model.config.layers + 1), title=title)
        for axis, name in zip(axes, channels):
            heatmap(axis, np.stack(rows[name]), title=name, x="position" if name == channels[-1] else "", y="layer")
    return figure


def draw_wiring(model: TheoryTransformer, axis: Axes | None = None, title: str = "") -> Figure:
    """Which channels each layer reads and writes: attention on the left of a column, the network on the right."""
    names = model.config.channels
    reads = np.zeros((len(names), 2 * model.config.layers))
    for depth, layer in enumerate(model.layers):
        attention = layer.attention
        if attention.query.numel():
            read = torch.stack([attention.query, attention.key, attention.value]).detach().abs().sum((0, 1, 3))
            reads[:, 2 * depth] += (read > 0).cpu().numpy()
            written = attention.output.detach().abs().sum((0, 1))
            reads[:, 2 * depth] += 2 * (written > 0).cpu().numpy()
        if layer.has_mlp:
            maps = layer.mlp.maps
            reads[:, 2 * depth + 1] += (maps[0].weight.detach().abs().sum(0) > 0).cpu().numpy()
            reads[:, 2 * depth + 1] += 2 * (maps[-1].weight.detach().abs().sum(1) > 0).cpu().numpy()
    with style():
        if axis is None:
            _, (axis,) = new(width=2.6 + 0.42 * model.config.layers, height=1.0 + 0.2 * len(names))
        _legend_table(axis, reads, names, title)
    return axis.figure  # type: ignore[return-value]


def _legend_table(axis: Axes, reads: np.ndarray, names: Sequence[str], title: str) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = ["#ffffff", "#a9c6da", "#e7a33e", "#0b3954"]
    axis.imshow(reads, cmap=ListedColormap(colours), vmin=0, vmax=3, aspect="auto", interpolation="nearest")
    layers = reads.shape[1] // 2
    axis.set_yticks(range(len(names)), names, fontsize=7.5)
    axis.set_xticks(np.arange(layers) * 2 + 0.5, [str(depth + 1) for depth in range(layers)], fontsize=8)
    for border in range(1, layers):
        axis.axvline(2 * border - 0.5, color="#888888", linewidth=0.7)
    axis.set(xlabel="layer: attention | network", title=title or "What each layer reads and writes")
    axis.grid(False)
    marks = [Patch(color=colour, label=word) for colour, word in zip(colours[1:], ("reads", "writes", "both"))]
    axis.legend(handles=marks, loc="upper left", bbox_to_anchor=(1.0, 1.0))
