"""One look for every figure: a style sheet and the few shapes that studies draw again and again.

Colours differ in lightness as well as in hue, so that a figure survives a greyscale printer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "band", "heatmap", "levels", "new", "save_film", "style"]

COLOURS = ("#0b3954", "#d1495b", "#4f9d69", "#edae49", "#7b5ea7", "#30a2c7", "#8a8d91", "#5c2e0d")
_RULES: dict[Any, object] = {
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "savefig.bbox": "tight",
    "svg.hashsalt": "sandlab",
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "image.cmap": "cividis",
}


@contextmanager
def style() -> Iterator[None]:
    """Draw inside this block in the laboratory's style, without a screen."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    from cycler import cycler

    dashes = ["-", "-", "-", "-", "--", "--", "--", "--"]
    rules: dict[Any, object] = {**_RULES, "axes.prop_cycle": cycler(color=COLOURS) + cycler(linestyle=dashes)}
    with matplotlib.rc_context(rules):
        yield


def new(
    columns: int = 1, rows: int = 1, *, width: float = 4.6, height: float = 3.2, title: str = ""
) -> tuple[Figure, list[Axes]]:
    """A figure with rows × columns panels (as a flat list), the claim as its title.

    Made without pyplot, so that nothing is held globally and a study may run in a thread.
    """
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, columns)).ravel().tolist()
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=11)
    return figure, axes


def band(axis: Axes, x: Sequence[float] | np.ndarray, curves: np.ndarray, label: str = "", **options: Any) -> None:
    """The median of several runs (run axis first) with the range between the runs shaded."""
    curves = np.atleast_2d(np.asarray(curves, dtype=float))
    (line,) = axis.plot(x, np.nanmedian(curves, 0), label=label, **options)
    if len(curves) > 1:
        low, high = np.nanmin(curves, 0), np.nanmax(curves, 0)
        axis.fill_between(x, low, high, color=line.get_color(), alpha=0.18, linewidth=0)


def levels(axis: Axes, values: Mapping[str, float], *, colour: str = "#555555") -> None:
    """Horizontal dashed lines with their names at the right edge: the losses of known estimators."""
    rising = sorted(values.items(), key=lambda item: item[1])
    low, high = axis.get_ylim()
    for place, (name, value) in enumerate(rising):
        axis.axhline(value, color=colour, linestyle=":", linewidth=1.1)
        # A line just above would strike through the name: it then stands below its own line.
        crowded = place + 1 < len(rising) and rising[place + 1][1] - value < 0.06 * abs(high - low)
        side = "top" if crowded else "bottom"
        where = ("axes fraction", "data")
        axis.annotate(name, (1.0, value), xycoords=where, fontsize=8, color=colour, ha="right", va=side)


def heatmap(
    axis: Axes,
    values: np.ndarray,
    *,
    title: str = "",
    x: str = "",
    y: str = "",
    low: float | None = None,
    high: float | None = None,
    bar: bool = True,
    numbers: bool = False,
    cmap: str | None = None,
) -> None:
    """A matrix as colours; with `numbers`, each cell's value is written into it."""
    values = np.asarray(values, dtype=float)
    image = axis.imshow(values, vmin=low, vmax=high, aspect="auto", interpolation="nearest", cmap=cmap)
    axis.grid(False)
    axis.set(title=title, xlabel=x, ylabel=y)
    axis.locator_params(integer=True)
    if bar:
        axis.figure.colorbar(image, ax=axis, shrink=0.85)
    if numbers:
        span = np.nanmax(values) + np.nanmin(values)
        for (row, column), value in np.ndenumerate(values):
            shade = "white" if 2 * value < span else "black"
            axis.text(column, row, f"{value:.2g}", ha="center", va="center", fontsize=8, color=shade)


def save_film(film: Any, path: str | Path, *, fps: int = 8) -> Path:
    """Write an animation (matplotlib's FuncAnimation) as a GIF, without a screen."""
    from matplotlib.animation import PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(film._fig)
    film.save(str(path), writer=PillowWriter(fps=fps))
    return Path(path)
