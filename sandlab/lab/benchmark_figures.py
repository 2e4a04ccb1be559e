"""Pictures and files of measured speed ratios."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from sandlab.lab.benchmarks import benchmark_files, load_benchmark
from sandlab.lab.files import write_atomic
from sandlab.lab.store import plain

__all__ = ["machine_words", "ratio_figure", "summary_figure", "write_measurements"]


def write_measurements(measured: dict[str, Any], folder: Path) -> list[Path]:
    """The measurements as JSON, their ratios as one small and one detailed figure, and the benchmarks' own figures."""
    from sandlab.figures import style

    files = {"bench.json": json.dumps(plain(measured), indent=1, ensure_ascii=False).encode()}
    pictures = _own_figures(measured)
    if any(row.get("ratio") for row in measured["rows"]):
        pictures |= {"bench": summary_figure(measured), "bench-cases": ratio_figure(measured)}
    for name, figure in pictures.items():
        for kind in ("svg", "png"):
            picture = io.BytesIO()
            with style():
                figure.savefig(picture, format=kind)
            files[f"{name}.{kind}"] = picture.getvalue()
    for name, data in files.items():
        write_atomic(folder / name, data)
    return [folder / name for name in files]


def machine_words(machine: dict[str, Any]) -> str:
    """The machine in a few words."""
    return machine.get("accelerator") or f"{machine['processor']}, {machine['cores']} cores"


def summary_figure(measured: dict[str, Any]) -> Any:
    """One line per benchmark: a dot for each case's ratio, the median named, on a logarithmic axis; 1 is a draw."""
    from sandlab import figures

    groups = _groups(measured)
    title = "Times faster than the baseline run beside it"
    figure, (axis,) = figures.new(width=8.6, height=1.3 + 0.52 * len(groups), title=title)
    highest = max(row["ratio"] for rows in groups.values() for row in rows)
    with figures.style():
        for place, rows in enumerate(groups.values()):
            ratios = np.array([row["ratio"] for row in rows])
            colour = figures.COLOURS[place % len(figures.COLOURS)]
            axis.plot([ratios.min(), ratios.max()], [place, place], color=colour, linewidth=5, alpha=0.18)
            axis.plot(ratios, np.full(len(ratios), place), "o", color=colour, markersize=5, alpha=0.75)
            axis.plot([np.median(ratios)] * 2, [place - 0.28, place + 0.28], color=colour, linewidth=2.5)
            cases = f"{len(ratios)} cases" if len(ratios) > 1 else "1 case"
            text = f"{_short(float(np.median(ratios)))}×  ({cases})"
            axis.annotate(text, (highest * 1.6, place), va="center", fontsize=9, color=colour, fontweight="bold")
        axis.axvline(1.0, color="#555555", linestyle=":", linewidth=1.2)
        axis.set(xscale="log", xlabel=f"ratio (bar: median)\n{machine_words(measured['machine'])}")
        axis.set_yticks(range(len(groups)), [_label(name, rows) for name, rows in groups.items()], fontsize=8.5)
        axis.set_xlim(right=highest * 12)
        axis.grid(axis="y", visible=False)
        axis.invert_yaxis()
    return figure


def ratio_figure(measured: dict[str, Any]) -> Any:
    """Every case as a bar, on a logarithmic axis; 1 is a draw."""
    from sandlab import figures

    groups = _groups(measured)
    rows = [row for group in groups.values() for row in group]
    title = f"Times faster than the baseline ({machine_words(measured['machine'])})"
    figure, (axis,) = figures.new(width=8.5, height=1.0 + 0.22 * max(1, len(rows)), title=title)
    names = list(groups)
    colours = [figures.COLOURS[names.index(row["benchmark"]) % len(figures.COLOURS)] for row in rows]
    with figures.style():
        axis.barh(range(len(rows)), [row["ratio"] for row in rows], color=colours)
        axis.set_yticks(range(len(rows)), [f"{_words(row['benchmark'])}: {row['name']}" for row in rows], fontsize=7.5)
        axis.axvline(1.0, color="#555555", linestyle=":")
        axis.set(xscale="log", xlabel="ratio (1: as fast as the baseline)", ylim=(len(rows) - 0.4, -0.6))
        for place, row in enumerate(rows):
            text = f"{_short(row['ratio'])}×"
            axis.annotate(text, (row["ratio"], place), (4, 0), textcoords="offset points", va="center", fontsize=7.5)
    return figure


def _own_figures(measured: dict[str, Any]) -> dict[str, Any]:
    """The figures of benchmarks that draw their own."""
    found = {}
    known = {file.stem: file for file in benchmark_files()}
    for name in dict.fromkeys(row["benchmark"] for row in measured["rows"]):
        if name in known and "def draw(" in known[name].read_text(encoding="utf-8"):
            rows = [row for row in measured["rows"] if row["benchmark"] == name]
            found[f"bench-{name}"] = load_benchmark(known[name]).draw(rows)
    return found


def _groups(measured: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in measured["rows"]:
        if row.get("ratio"):
            groups.setdefault(row["benchmark"], []).append(row)
    return groups


def _label(name: str, rows: list[dict[str, Any]]) -> str:
    """The benchmark's name and below it what it is compared with."""
    baselines = list(dict.fromkeys(row["against"] for row in rows if row.get("against")))
    return "\n".join([_words(name), *([f"against {' / '.join(baselines)}"] if baselines else [])])


def _words(name: str) -> str:
    return name.replace("_", " ")


def _short(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 1000 else f"{ratio:,.0f}".replace(",", " ")
