"""Speed ratios: every file of `benchmarks/` has a `measure()` that times ours and a baseline in the same run.

What a benchmark file may have:

- `measure(**options)`   rows (a list or a generator) with name, unit, ours, baseline, ratio and whatever else it knows
- `QUICK`                the options of a shorter measurement
- `BASELINE`             in a few words what ours is compared with; a row may say its own as "against"
- `draw(rows)`           a figure of its own

Each runs in a fresh process: what one loads or leaves in memory does not disturb the next, and a time limit holds.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path

from sandlab.errors import BadInput, nearest
from sandlab.lab._exec.sources import PACKAGE
from sandlab.lab._store.environment import environment
from sandlab.lab._store.plain import Facts, plain

__all__ = ["MINUTES", "benchmark_files", "load_benchmark", "measure_against", "measure_all", "measure_here"]

MINUTES = 9.5
_KEPT_FOR_EACH = 20.0  # seconds that a long benchmark leaves to each of those after it
_CHILD = "from sandlab.lab._bench.measure import measure_here; measure_here()"

Tell = Callable[[str], None]


def benchmark_files(names: list[str] | None = None, folder: Path | None = None) -> list[Path]:
    """The benchmarks of the repository, or the named ones."""
    folder = folder or _folder()
    files = {
        path.stem: path for path in sorted(folder.glob("*.py")) if "def measure(" in path.read_text(encoding="utf-8")
    }
    if not files:
        raise BadInput(f"there are no benchmarks in {folder}: they are part of a checkout of the repository")
    for name in names or []:
        if name not in files:
            raise BadInput(f"no benchmark called {name!r}: {nearest(name, files) or 'there are ' + ', '.join(files)}")
    return [files[name] for name in names or files]


def measure_all(
    files: list[Path], tell: Tell = lambda _text: None, *, quick: bool = False, minutes: float = MINUTES
) -> Facts:
    """Run the benchmarks one after another within the minutes. Rows: benchmark, name, unit, ours, baseline, ratio.

    A benchmark that is still running when its time is over is stopped; the rows that it had finished are kept, and
    `notes` says so.
    """
    end = time.monotonic() + 60 * minutes
    rows: list[Facts] = []
    notes: list[str] = []
    for place, file in enumerate(files):
        tell(file.stem)
        start = time.monotonic()
        limit = max(_KEPT_FOR_EACH, end - start - _KEPT_FOR_EACH * (len(files) - place - 1))
        found, problem = _in_process(file, "measure", {}, quick=quick, limit=limit)
        rows += [{"benchmark": file.stem, **row} for row in found]
        if problem:
            notes.append(f"{file.stem}: {problem}")
            tell(notes[-1])
        tell(f"{file.stem}: {len(found)} rows, {time.monotonic() - start:.0f} s")
    return {"machine": _described(), "rows": rows, "notes": notes}


def measure_against(path: Path, tell: Tell = lambda _text: None, *, minutes: float = MINUTES) -> Facts:
    """Time the generators of a public repository that lies at `path`, and ours for the same job."""
    file = _folder() / "against.py"
    if not file.is_file():
        raise BadInput(f"there is no {file}: the adapters are part of a checkout of the repository")
    name = load_benchmark(file).recognise(path).name
    tell(f"{name} in {path}")
    rows, problem = _in_process(file, "measure_against", {"path": str(path)}, limit=60 * minutes)
    if not rows:
        raise BadInput(f"{path} looks like {name}, but it could not be timed: {problem or 'it gave no rows'}")
    return {
        "machine": _described(),
        "rows": [{"benchmark": name, **row} for row in rows],
        "notes": [problem] * bool(problem),
    }


def measure_here() -> None:
    """What the fresh process does: rows as JSON lines on standard output; anything that is printed goes elsewhere."""
    file, function, options, quick = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4] == "quick"
    answers, sys.stdout = sys.stdout, sys.stderr
    module = load_benchmark(Path(file))
    if quick:
        options |= getattr(module, "QUICK", {})
    try:
        for row in getattr(module, function)(**options):
            row.setdefault("against", getattr(module, "BASELINE", ""))
            print(json.dumps(plain(row)), file=answers, flush=True)
    except (BadInput, ImportError) as error:
        print(json.dumps({"problem": str(error)}), file=answers, flush=True)


def load_benchmark(file: Path) -> types.ModuleType:
    """The module of a file; files of one folder may import each other."""
    spec = importlib.util.spec_from_file_location(f"sandlab_benchmark_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise BadInput(f"{file} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses of the file look their module up
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module


def _in_process(
    file: Path, function: str, options: Facts, *, quick: bool = False, limit: float
) -> tuple[list[Facts], str]:
    """The rows of a benchmark run in a fresh process, and what went wrong, if anything did."""
    command = [sys.executable, "-c", _CHILD, str(file), function, json.dumps(options), "quick" if quick else "whole"]
    # One thread: on a machine with other work, threads that wait for each other measure the other work.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, encoding="utf-8", env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(limit, stop)
    timer.start()
    try:
        answers = list(_lines(process))
        code = process.wait()
    finally:
        timer.cancel()
        process.kill()
    rows = [answer for answer in answers if "problem" not in answer]
    problems = [answer["problem"] for answer in answers if "problem" in answer]
    if late.is_set():
        problems.append(f"stopped after {limit:.0f} s with {len(rows)} rows, as much as fits into the time allowed")
    elif code:
        problems.append(f"ended with code {code} after {len(rows)} rows")
    return rows, "; ".join(problems)


def _lines(process: subprocess.Popen[str]) -> Iterator[Facts]:
    assert process.stdout is not None
    for line in process.stdout:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:  # a line cut by the time limit
            return


def _folder() -> Path:
    return PACKAGE.parent / "benchmarks"


def _described() -> Facts:
    """The machine, with how busy it was: ratios are taken side by side, absolute speeds suffer from other work."""
    load = os.getloadavg()[0]
    return {**environment(), "load": load}
