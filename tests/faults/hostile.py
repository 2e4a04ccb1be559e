"""Stores from elsewhere: a run or a result of a job is changed somewhere, and sealed again with right checksums.

    python tests/faults/hostile.py --stores 300

Each store is given to `doctor`, `claims`, `report`, `publish`, `run` and `run --judge-only`. Each must end with a
documented exit code, without a traceback and without control characters on the screen, and must write nothing outside
the folders that were named.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))

import toys

import sandlab as sl
from sandlab.cli import call
from sandlab.lab._store.cache import _seal

JUNK: list[Any] = [
    None, True, 0, -1, 1e308, float("inf"), float("nan"), 10**400, "", "x", "\x1b[31m", "../../x", "/etc/passwd", [],
    [None], {}, {"a": 1}, "<script>", "a" * 5000, [[[[]]]], "\ud800",
]  # fmt: skip
RAW = [b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"", b"1e999", b"NaN", b"9" * 5000]
JSON = ("findings.json", "environment.json", "tables.json", "results/results.json")
FILES = (*JSON, "results/arrays.npz", "figures/means.svg")
DOCUMENTED = {0, 1, 2, 3}


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to every part of a JSON value, itself among them."""
    yield here
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*here, key))


def changed(value: Any, rng: random.Random) -> tuple[Any, str]:
    """The value with one part replaced or left out, and what was done."""
    *path, last = rng.choice(list(places(value))[1:])
    junk, gone = rng.choice(JUNK), rng.random() < 0.25
    holder = value
    for key in path:
        holder = holder[key]
    if gone:
        del holder[last]
    else:
        holder[last] = junk
    return value, f"{[*path, last]} {'left out' if gone else ascii(junk)[:30]}"


def spoil(store: Path, rng: random.Random) -> str:
    """Change one file of a store, and every checksum that would show it; says what was done."""
    (run,) = store.rglob("run.json")
    kind = rng.choice(["run", "run", "part", "part", "part", "raw", "job"])
    if kind == "job":
        file = rng.choice(sorted((store / "cache").rglob("*.json")))
        entry, what = changed(json.loads(file.read_text())["entry"], rng)
        file.write_text(json.dumps({"checksum": _seal(entry), "entry": entry}))
        return f"job {what}"
    about = json.loads(run.read_text())
    if kind == "run":
        about, what = changed(about, rng)
        run.write_text(json.dumps(about))
        return f"run.json {what}"
    name = rng.choice(FILES if kind == "raw" else JSON)
    what, data = "raw", rng.choice(RAW)
    if kind == "part":
        value, what = changed(json.loads((run.parent / name).read_text()), rng)
        data = json.dumps(value).encode()
    (run.parent / name).write_bytes(data)
    run.write_text(json.dumps({**about, "files": {**about["files"], name: hashlib.sha256(data).hexdigest()}}))
    return f"{name} {what} {data[:12]!r}"


def commands(store: Path, out: Path) -> list[list[str]]:
    words = [
        ["doctor"],
        ["claims", "toy/uniform"],
        ["report", "--out", str(out / "report")],
        ["publish", "toy/uniform", "--to", str(out / "docs")],
        ["run", "toy/uniform", "--on", "local", "--judge-only"],
        ["run", "toy/uniform", "--on", "local"],
    ]
    return [[*each, "--store", str(store)] for each in words]


def end(words: list[str]) -> str:
    """How a command ends: its exit code, or what should not have been."""
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: print(f"sandlab: {message}".encode("ascii", "replace"))
        code = call(words)
    text = screen.getvalue()
    if "Traceback" in text or code not in DOCUMENTED:
        return f"raw exit {code}: {[line for line in text.splitlines() if line.strip()][-2:]}"
    if any(ord(letter) < 32 and letter not in "\n\t\r" for letter in text):
        return "raw control characters on the screen"
    return f"exit {code}"


def run(stores: int, seed: int = 0) -> collections.Counter[str]:
    """The ends of all commands on so many spoilt stores."""
    ends: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        sl.run(toys.study, store=base / "whole", progress=False)
        for number in range(stores):
            rng = random.Random(seed * 1_000_000 + number)
            work = base / str(number)
            shutil.copytree(base / "whole", work / "in" / "store")
            what = spoil(work / "in" / "store", rng)
            for words in commands(work / "in" / "store", work / "in" / "out"):
                how = end(words)
                ends["raw" if how.startswith("raw") else how] += 1
                if how.startswith("raw"):
                    print(f"{how}   <-   {words[0]} {what}", flush=True)
            escaped = {*os.listdir(base), *os.listdir(work), *os.listdir(work / "in")} - {"in", "store", "out", "whole"}
            if escaped - {str(number)}:
                ends["raw"] += 1
                print(f"written outside: {sorted(escaped)}   <-   {what}", flush=True)
            shutil.rmtree(work)
    return ends


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--stores", type=int, default=100)
    reader.add_argument("--seed", type=int, default=0)
    given = reader.parse_args()
    print(json.dumps(run(given.stores, given.seed)))


if __name__ == "__main__":
    main()
