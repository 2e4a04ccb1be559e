"""A warm laboratory that is broken again and again: started under `preload.c`, it forks a process for each fault.

Reads lines of JSON: {"store": folder, "at": number of the call, "error": 0 (kill) or errno, "lasting": flag}. For each
it runs the toy study into the store with that fault, then once more without, and answers with what it found.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))

import numpy as np  # noqa: F401
import pyarrow.parquet  # noqa: F401
import toys

import sandlab as sl
import sandlab.lab._report.site
import sandlab.lab.run
from sandlab.cli import call
from sandlab.lab._store.store import Store

LAYER = ctypes.CDLL(None)


def broken(request: dict, told: Path) -> int:
    """The study with a fault, in a process of its own: its exit status, −9 when killed."""
    child = os.fork()
    if child == 0:
        screen = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(screen, 1)
        os.dup2(screen, 2)
        warnings.showwarning = lambda message, *_: print(f"sandlab: {message}", file=sys.stderr)
        os.environ[toys.LOG] = request["log"]
        LAYER.fault_arm(
            request["store"].encode(), ctypes.c_long(request["at"]), request["error"], int(request["lasting"])
        )
        code = call(["run", "toy/uniform", "--on", "local", "--store", request["store"]])
        LAYER.fault_disarm()
        sys.stderr.flush()
        os.write(2, f"\ncalls {LAYER.fault_calls()}\n".encode())
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def mended(request: dict) -> dict:
    """What the same command finds afterwards, and what lies in the store."""
    before = Store(request["store"]).cache.stored() if os.path.isdir(request["store"]) else []
    os.environ[toys.LOG] = request["log"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = sl.run(toys.study, store=request["store"], progress=False)
        opened = Store.open(request["store"])
    rows = {table: len(opened.index.rows(f"select * from {table}")) for table in ("runs", "findings", "jobs")}
    figures = {name: path.read_text() for name, path in report.figures.items()}
    return {
        "kept": len(before),
        "jobs": report.about["jobs"],
        "reused": report.reused,
        "metrics": report.metrics,
        "figures": hash(json.dumps(figures)),
        "runs": len(opened.records()),
        "intact": all(record.intact() for record in opened.records()),
        "index": rows,
    }


def serve() -> None:
    with tempfile.TemporaryDirectory() as folder:  # what is loaded and remembered once serves every fork
        sl.run(toys.study, store=folder, progress=False)
    for line in sys.stdin:
        request = json.loads(line)
        told = Path(request["log"]).with_suffix(".told")
        status = broken(request, told)
        finished = Path(request["log"]).read_text().count("done")
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                answer = mended(request)
            except BaseException:
                answer = {"error": traceback.format_exc()}
            os.write(writing, json.dumps(answer).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            answer = json.loads(pipe.read())
        os.waitpid(child, 0)
        starts = [each for each in Path(request["log"]).read_text().splitlines() if each.startswith("start")]
        facts = {"status": status, "told": told.read_text(), "starts": starts, "finished": finished}
        print(json.dumps({**facts, **answer}), flush=True)


if __name__ == "__main__":
    serve()
