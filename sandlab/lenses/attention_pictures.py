"""Marks on attention maps: where symbols were written, what each row attends to most, which rows are wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["mark_attention"]

SHAPES = (("o", "#edae49"), ("D", "#30a2c7"), ("s", "#4f9d69"), ("^", "#7b5ea7"))


def mark_attention(
    axis: Axes, pattern: np.ndarray, *, writes: Mapping[int, int] | None = None, wrong: Iterable[int] = ()
) -> None:
    """Draw marks on a heat map of one head (query, key) that is already on the axis.

    writes   key → symbol written there: an orange dot on the upper edge for symbol 0, a blue diamond for 1, …
    wrong    queries with a wrong answer: red lines above and below the row
    Each row's largest weight carries a small white dot. (As in the maps of Liu et al. 2023.)
    """
    rows = np.arange(len(pattern))
    axis.plot(np.asarray(pattern).argmax(-1), rows, "o", color="white", markersize=2.6, mec="#222222", mew=0.4)
    for key, symbol in (writes or {}).items():
        shape, colour = SHAPES[symbol % len(SHAPES)]
        upper_edge = axis.get_xaxis_transform()
        axis.plot(key, 1.0, shape, color=colour, markersize=4, markeredgewidth=0, transform=upper_edge, clip_on=False)
    for query in wrong:
        for edge in (query - 0.5, query + 0.5):
            axis.axhline(edge, color="#d1495b", linewidth=0.9)
    axis.set(xlim=(-0.5, pattern.shape[-1] - 0.5), ylim=(len(pattern) - 0.5, -0.5))
