"""Pictures and files of measured speed ratios."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sandlab.lab._bench.measure import benchmark_files, load_benchmark
from sandlab.lab._store.files import write_atomic
from sandlab.lab._store.plain import Facts, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["case_page", "machine_words", "ratio_figure", "summary_figure", "write_measurements"]

_ORDER = ("training", "data_generation", "sampling", "oracles", "automata", "decoding", "startup", "memory")


def write_measurements(measured: Facts, folder: Path) -> list[Path]:
    """The measurements as JSON and as a page, their ratios as two figures, and the benchmarks' own figures."""
    from sandlab.figures import style

    files = {
        "bench.json": json.dumps(plain(measured), indent=1, ensure_ascii=False).encode(),
        "bench-cases.md": case_page(measured).encode(),
    }
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


def case_page(measured: Facts) -> str:
    """Every row as a Markdown table, with the machine and the date."""
    machine = measured["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items() if name == "torch")
    lines = [
        "# Every measured case",
        "",
        f"{machine_words(machine)}, {machine['system']}, Python {machine['python']}, {packages}, {machine['date']}.",
        *([f"Load when it ended: {machine['load']:.1f}."] if machine.get("load") is not None else []),
        "",
        "| benchmark | case | ours | baseline | ratio | baseline is |",
        "|---|---|---|---|---|---|",
    ]
    for row in measured["rows"]:
        unit, ratio = row.get("unit", ""), f"{_short(row['ratio'])}×" if row.get("ratio") else ""
        baseline = f"{row['baseline']:.3g} {unit}" if row.get("baseline") else ""
        cells = [
            _words(row["benchmark"]),
            row["name"],
            f"{row['ours']:.3g} {unit}",
            baseline,
            ratio,
            row.get("against", ""),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *(["", *measured["notes"]] if measured["notes"] else []), ""])


def machine_words(machine: Facts) -> str:
    """The machine in a few words."""
    return machine.get("accelerator") or f"{machine['processor']}, {machine['cores']} cores"


def summary_figure(measured: Facts) -> Figure:
    """One line per benchmark and kind of baseline: a dot for each case's ratio, the median named; 1 is a draw."""
    from sandlab import figures

    lines = _groups(measured, "against")
    title = "How many times better than the baseline of the same run"
    figure, (axis,) = figures.new(width=8.6, height=1.3 + 0.5 * len(lines), title=title)
    every = [row["ratio"] for rows in lines.values() for row in rows]
    with figures.style():
        for place, rows in enumerate(lines.values()):
            ratios = np.array([row["ratio"] for row in rows])
            middle, colour = float(np.median(ratios)), _colour(rows[0])
            axis.plot([ratios.min(), ratios.max()], [place, place], "-", color=colour, linewidth=5, alpha=0.18)
            axis.plot(ratios, np.full(len(ratios), place), "o", color=colour, markersize=5, alpha=0.75)
            axis.plot([middle] * 2, [place - 0.28, place + 0.28], "-", color=colour, linewidth=2.5)
            text = f"{_short(middle)}×  ({len(ratios)} case{'s' * (len(ratios) > 1)})"
            axis.annotate(text, (max(every) * 1.6, place), va="center", fontsize=9, color="#222222", fontweight="bold")
        axis.axvline(1.0, color="#555555", linestyle=":", linewidth=1.2)
        axis.set(xscale="log", xlabel=f"ratio (bar: median)\n{machine_words(measured['machine'])}")
        axis.xaxis.set_major_formatter(lambda value, _place: f"{value:g}")
        axis.set_xlim(min(*every, 0.9) / 1.3, max(every) * 14)
        axis.set_yticks(range(len(lines)), [_label(rows[0]) for rows in lines.values()], fontsize=8.5)
        axis.grid(axis="y", visible=False)
        axis.invert_yaxis()
    return figure


def ratio_figure(measured: Facts) -> Figure:
    """Every case as a bar, on a logarithmic axis; 1 is a draw."""
    from sandlab import figures

    rows = [row for group in _groups(measured).values() for row in group]
    title = f"Times faster than the baseline ({machine_words(measured['machine'])})"
    figure, (axis,) = figures.new(width=8.5, height=1.0 + 0.22 * max(1, len(rows)), title=title)
    with figures.style():
        axis.barh(range(len(rows)), [row["ratio"] for row in rows], color=[_colour(row) for row in rows])
        axis.set_yticks(range(len(rows)), [f"{_words(row['benchmark'])}: {row['name']}" for row in rows], fontsize=7.5)
        axis.axvline(1.0, color="#555555", linestyle=":")
        axis.set(xscale="log", xlabel="ratio (1: as fast as the baseline)", ylim=(len(rows) - 0.4, -0.6))
        for place, row in enumerate(rows):
            text = f"{_short(row['ratio'])}×"
            axis.annotate(text, (row["ratio"], place), (4, 0), textcoords="offset points", va="center", fontsize=7.5)
    return figure


def _own_figures(measured: Facts) -> Facts:
    """The figures of benchmarks that draw their own."""
    found = {}
    known = {file.stem: file for file in benchmark_files()}
    for name in dict.fromkeys(row["benchmark"] for row in measured["rows"]):
        if name in known and "def draw(" in known[name].read_text(encoding="utf-8"):
            rows = [row for row in measured["rows"] if row["benchmark"] == name]
            found[f"bench-{name}"] = load_benchmark(known[name]).draw(rows)
    return found


def _groups(measured: Facts, *keys: str) -> dict[tuple[str, ...], list[Facts]]:
    """The rows with a ratio by benchmark (and further keys), the benchmarks in the order of interest."""
    groups: dict[tuple[str, ...], list[Facts]] = {}
    rows = [row for row in measured["rows"] if row.get("ratio")]
    known = {name: place for place, name in enumerate(_ORDER)}
    for row in sorted(rows, key=lambda row: known.get(row["benchmark"], len(known))):
        groups.setdefault((row["benchmark"], *(row.get(key, "") for key in keys)), []).append(row)
    return groups


def _colour(row: Facts) -> str:
    from sandlab.figures import COLOURS

    return COLOURS[_ORDER.index(row["benchmark"]) % len(COLOURS)] if row["benchmark"] in _ORDER else COLOURS[0]


def _label(row: Facts) -> str:
    """The benchmark's name and below it what it is compared with."""
    return "\n".join([_words(row["benchmark"]), *([f"against {row['against']}"] if row.get("against") else [])])


def _words(name: str) -> str:
    return name.replace("_", " ")


def _short(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 1000 else f"{ratio:,.0f}".replace(",", " ")
