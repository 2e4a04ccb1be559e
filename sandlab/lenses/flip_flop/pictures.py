"""Figures of the chapter: errors of trained models, attention on one input, the limits of a head and of a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sandlab.figures import COLOURS, heatmap
from sandlab.lenses.attention_pictures import mark_attention
from sandlab.lenses.flip_flop.attention_limits import LinearPositionHead, dilution_bound
from sandlab.lenses.flip_flop.tail_errors import ErrorCurve, best_so_far
from sandlab.worlds.flip_flop.language import FlipFlop

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "draw_dilution",
    "draw_drift",
    "draw_error_curve",
    "draw_error_ranges",
    "draw_error_scatter",
    "draw_failure_lengths",
    "draw_operations",
    "draw_training_errors",
    "draw_window_errors",
]


def draw_training_errors(
    axis: Axes, steps: np.ndarray, errors: np.ndarray, *, colour: str, label: str, style: str = "-"
) -> None:
    """Errors during training: a thin line per seed, and the median over seeds of the best so far.

    The scale is linear near zero, so that exact zeros are visible.
    """
    axis.plot(steps, errors.T, color=colour, linewidth=0.6, alpha=0.6, linestyle="-")
    axis.plot(steps, np.median(best_so_far(errors), 0), color=colour, linestyle=style, label=label)
    axis.set_yscale("symlog", linthresh=1e-3)
    axis.set_ylim(0, 1)


def draw_error_curve(axis: Axes, curve: ErrorCurve) -> None:
    """Error rates by the lower edge of their bins, with exact intervals; empty bins are left out."""
    low, high = curve.intervals
    shown = curve.counts > 0
    rate = curve.rates[shown]
    reach = np.stack([rate - low[shown], high[shown] - rate]).clip(min=0)
    axis.errorbar(curve.edges[:-1][shown], rate, yerr=reach, fmt="o", markersize=4, capsize=2, linestyle="none")
    axis.set_xscale("symlog", base=2, linthresh=1)
    axis.set_yscale("symlog", linthresh=1e-5)
    axis.set_ylim(0, 1)


def draw_error_ranges(axis: Axes, errors: Mapping[str, np.ndarray], colours: Sequence[str]) -> None:
    """One row per setting: least, quartiles and largest error of its seeds, and the number of exact zeros."""
    for row, (values, colour) in enumerate(zip(errors.values(), colours)):
        low, first, middle, third, high = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
        axis.plot([low, high], [row, row], color=colour, linewidth=1.0, linestyle="-")
        axis.plot([first, third], [row, row], color=colour, linewidth=5.0, alpha=0.5, linestyle="-")
        axis.plot(middle, row, "o", color=colour, markersize=3.5)
        if zeros := int((values == 0).sum()):
            axis.annotate(f"{zeros} ", (0, row), ha="right", va="center", fontsize=7, color=colour)
    axis.set_xscale("symlog", linthresh=1e-4)
    axis.set(xlabel="read error (at the left: seeds without any)", xlim=(-3e-5, 1))
    axis.set_xticks([0, 1e-4, 1e-3, 1e-2, 1e-1, 1])
    axis.set_yticks(range(len(errors)), list(errors), fontsize=7.5)
    axis.set_ylim(len(errors) - 0.4, -0.6)


def draw_error_scatter(axis: Axes, errors: Mapping[str, tuple[np.ndarray, np.ndarray]], colours: Sequence[str]) -> None:
    """Name → (dense, sparse) errors, one dot per trained model; recurrent models are squares."""
    for (name, (dense, sparse)), colour in zip(errors.items(), colours):
        marker = "s" if name == "recurrent" else "o"
        axis.plot(dense, sparse, marker, color=colour, markersize=4, alpha=0.7, label=name)
    axis.set_xscale("symlog", linthresh=1e-4)
    axis.set_yscale("symlog", linthresh=1e-4)
    axis.set(xlabel="read error, dense tail", ylabel="read error, sparse tail", title="one dot per trained model")
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def draw_drift(axis: Axes, attention: np.ndarray, length: int, failures: Sequence[int] = ()) -> None:
    """Attention on a write against the queries after it, a line per seed; predicted failure lengths are dashed."""
    for seed, curve in enumerate(attention):
        colour = COLOURS[seed % len(COLOURS)]
        axis.plot(np.arange(1, len(curve) + 1), curve, color=colour, linewidth=1.2, linestyle="-")
        if seed < len(failures) and failures[seed] < len(curve):
            axis.axvline(failures[seed], color=colour, linewidth=0.7, linestyle="--")
    axis.axvline(length, color="#555555", linewidth=1.0, linestyle=":")
    axis.annotate("training length ", (length, 0.97), fontsize=8, color="#555555", ha="right")
    axis.set(xlabel="queries after the latest write", ylabel="attention on it", ylim=(0, 1.05))
    axis.set_xscale("log")


def draw_operations(
    axis: Axes,
    pattern: np.ndarray,
    operations: Sequence[int],
    *,
    title: str = "",
    queries: bool = True,
    size: float = 8,
) -> None:
    """One head's attention (query, key) on operations of `FlipFlopTransduction`, which are written on the axes."""
    names = ["⊥" if token == 0 else f"σ{token - 1}" for token in operations]
    heatmap(axis, pattern, title=title, low=0.0, high=1.0, bar=False)
    mark_attention(axis, pattern, writes={index: token - 1 for index, token in enumerate(operations) if token})
    axis.set_xticks(range(len(names)), names, fontsize=size)
    axis.set_yticks(range(len(names)) if queries else [], names if queries else [], fontsize=size)
    axis.title.set_fontsize(size + 1)


def draw_dilution(axis: Axes) -> None:
    """`dilution_bound` against length, for several spectral norms."""
    lengths = np.unique(np.logspace(0.5, 4, 60).astype(int))
    for norm in (1, 2, 4, 6):
        axis.semilogx(lengths, [dilution_bound(norm, int(length)) for length in lengths], label=f"σ = {norm}")
    axis.set(title="bounded attention dilutes", xlabel="length", ylabel="largest possible weight", ylim=(-0.03, 1.35))
    axis.legend(ncols=2, loc="upper right")


def draw_failure_lengths(axis: Axes) -> None:
    """Lengths at which the memory unit of `LinearPositionHead` first fails, against its curvature."""
    curvatures = np.linspace(-2, 2, 81)
    heads = [LinearPositionHead.memory_unit(curvature) for curvature in curvatures]
    first, second = np.array([head.failure_lengths(4000) for head in heads], dtype=float).T
    axis.semilogy(curvatures, first, label="forgets the only write")
    axis.semilogy(curvatures, second, label="prefers the older write")
    axis.set(title="linear positions drift", xlabel="curvature κ", ylabel="first failing length")
    axis.legend(loc="upper right")


def draw_window_errors(axis: Axes) -> None:
    """Read error of the best predictor with a window, for three languages."""
    windows = np.arange(1, 200)
    for share in (0.98, 0.8, 0.1):
        world = FlipFlop.ignoring(share)
        axis.plot(windows, [world.ngram_error(int(window)) for window in windows], label=f"p_i = {share:g}")
    axis.set(title="a short window is not enough", xlabel="window (tokens)", ylabel="read error")
    axis.legend()
