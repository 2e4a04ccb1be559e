"""A drawing of an encoder from its config: what each layer does, from the tokens up (Figure 4.24)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandlab import figures
from sandlab.models.transformer import TransformerConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_encoder"]


def draw_encoder(config: TransformerConfig) -> Figure:
    """Boxes of a transformer, the tokens at the bottom; the sizes are those of the config."""
    heads = config.heads_per_layer[0] if config.layers else 0
    head_width = config.head_width or config.width // max(heads, 1)
    norm = {"pre": "normalise, then", "post": "add and normalise after"}.get(config.norm, "no norm around")
    boxes = [
        f"{config.vocab} tokens, {config.length} positions",
        f"embedding of width {config.width}" + (", normalised" if config.embedding_norm else ""),
        f"{heads} heads of width {head_width}" + ("" if config.causal else ", both directions"),
        f"feed-forward of width {config.mlp_width or 4 * config.width} ({config.mlp})",
        f"{config.outputs or config.vocab} logits" + (" after a hidden layer" if config.masked_head else ""),
    ]
    figure, (axis,) = figures.new(width=4.6, height=3.6)
    for place, text in enumerate(boxes):
        shape = {"boxstyle": "round,pad=0.5", "facecolor": "#eef2f5", "edgecolor": figures.COLOURS[0]}
        axis.text(0.5, place, text, ha="center", va="center", fontsize=9, bbox=shape)
        if place:
            axis.annotate("", (0.5, place - 0.3), (0.5, place - 0.7), arrowprops={"arrowstyle": "->"})
    axis.text(1.02, 2.5, f"× {config.layers}\n{norm}\neach branch", va="center", fontsize=9)
    axis.set(xlim=(0, 1.3), ylim=(-0.6, len(boxes) - 0.4))
    axis.set_axis_off()
    return figure
