"""Pictures of matrices over words, with lines between topics, and a film of the value matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from sandlab import figures

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["draw_topic_matrix", "value_film"]


def draw_topic_matrix(
    axis: Axes, matrix: Float[np.ndarray, "vocab vocab"], words: int, *, title: str = "", x: str = "word", y: str = ""
) -> None:
    """A matrix over words without the row and column of [MASK]; thin lines divide the topics of `words` words."""
    figures.heatmap(axis, matrix[1:, 1:], title=title, x=x, y=y)
    for border in np.arange(words, len(matrix) - 1, words) - 0.5:
        for line in (axis.axhline, axis.axvline):
            line(border, color="white", linewidth=0.4, alpha=0.6)


def value_film(
    steps: np.ndarray,
    values: Float[np.ndarray, "time vocab vocab"],
    norms: dict[str, Float[np.ndarray, " time"]],
    words: int,
    *,
    border: float | None = None,
) -> FuncAnimation:
    """The value matrix along training beside the norms of keys, queries and values; `figures.save_film` saves it.

    border   step at which stage 1 ends: it is shaded
    """
    from matplotlib.animation import FuncAnimation

    figure, (left, right) = figures.new(columns=2, width=4.2, height=3.4)
    draw_topic_matrix(left, values[0], words, y="predicted word")
    for name, curve in norms.items():
        right.plot(steps, curve / max(float(np.max(curve)), 1e-12), label=name)
    if border is not None:
        right.axvspan(0, border, color="#dddddd", alpha=0.5, linewidth=0)
    now = right.axvline(steps[0], color="#555555", linewidth=1.0)
    right.set(xlabel="training step", ylabel="norm (share of its largest value)")
    right.legend()

    def show(index: int) -> list[Artist]:
        image = left.images[0]
        image.set_data(values[index][1:, 1:])
        image.autoscale()
        left.set_title(f"value matrix, step {int(steps[index])}")
        now.set_xdata([steps[index]] * 2)
        return [image, now]

    return FuncAnimation(figure, show, frames=len(steps), interval=120)
