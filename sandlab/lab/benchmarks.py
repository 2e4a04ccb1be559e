"""Speed ratios: every file of `benchmarks/` has a `measure()` that times ours and a baseline in the same run."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandlab.errors import BadInput, nearest
from sandlab.lab.environment import environment
from sandlab.lab.files import write_atomic
from sandlab.lab.sources import PACKAGE
from sandlab.lab.store import plain

__all__ = ["benchmark_files", "measure_all", "ratio_figure", "write_measurements"]


def benchmark_files(names: list[str] | None = None, folder: Path | None = None) -> list[Path]:
    """The benchmarks of the repository, or the named ones."""
    folder = folder or PACKAGE.parent / "benchmarks"
    files = {
        path.stem: path for path in sorted(folder.glob("*.py")) if "def measure(" in path.read_text(encoding="utf-8")
    }
    if not files:
        raise BadInput(f"there are no benchmarks in {folder}: they are part of a checkout of the repository")
    for name in names or []:
        if name not in files:
            raise BadInput(f"no benchmark called {name!r}: {nearest(name, files) or 'there are ' + ', '.join(files)}")
    return [files[name] for name in names or files]


def measure_all(files: list[Path], tell: Callable[[str], None] = lambda _text: None) -> dict[str, Any]:
    """Run the benchmarks one after another. Rows: benchmark, name, unit, ours, baseline, ratio."""
    rows: list[dict[str, Any]] = []
    for file in files:
        tell(file.stem)
        start = time.perf_counter()
        for row in _load(file).measure():
            rows.append({"benchmark": file.stem, **row})
        tell(f"{file.stem}: {time.perf_counter() - start:.0f} s")
    return {"machine": environment(), "rows": rows}


def write_measurements(measured: dict[str, Any], folder: Path) -> list[Path]:
    """The measurements as JSON, and their ratios as a figure."""
    from sandlab.figures import style

    files = {"benchmarks.json": json.dumps(plain(measured), indent=1, ensure_ascii=False).encode()}
    figure = ratio_figure(measured)
    for kind in ("svg", "png"):
        picture = io.BytesIO()
        with style():
            figure.savefig(picture, format=kind)
        files[f"benchmarks.{kind}"] = picture.getvalue()
    for name, data in files.items():
        write_atomic(folder / name, data)
    return [folder / name for name in files]


def ratio_figure(measured: dict[str, Any]) -> Any:
    """How many times faster than its baseline each is, on a logarithmic axis; 1 is a draw."""
    from sandlab import figures

    rows = [row for row in measured["rows"] if row.get("ratio")]
    machine = measured["machine"]
    where = machine.get("accelerator") or f"{machine['processor']}, {machine['cores']} cores"
    height = 1.0 + 0.3 * max(1, len(rows))
    figure, (axis,) = figures.new(width=8.5, height=height, title=f"Times faster than the baseline ({where})")
    groups = list(dict.fromkeys(row["benchmark"] for row in rows))
    colours = [figures.COLOURS[groups.index(row["benchmark"]) % len(figures.COLOURS)] for row in rows]
    with figures.style():
        axis.barh(
            [f"{row['benchmark'].replace('_', ' ')}: {row['name']}" for row in rows],
            [row["ratio"] for row in rows],
            color=colours,
        )
        axis.axvline(1.0, color="#555555", linestyle=":")
        axis.set(xscale="log", xlabel="ratio (1: as fast as the baseline)")
        axis.invert_yaxis()
        for place, row in enumerate(rows):
            text = f"{row['ratio']:.3g}×"
            axis.annotate(text, (row["ratio"], place), (4, 0), textcoords="offset points", va="center", fontsize=8)
    return figure


def _load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"sandlab_benchmark_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise BadInput(f"{file} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses of the file look their module up
    sys.path.insert(0, str(file.parent))  # benchmarks may share a file
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module
