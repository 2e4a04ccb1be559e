"""Long campaigns of faults that can be cut at any moment: what is done is a line of JSON, and the same command goes on.

    python tests/faults/campaign.py api --calls 10000 --log api.jsonl
    python tests/faults/campaign.py terminal --calls 2000 --log terminal.jsonl
    python tests/faults/campaign.py kills --kind training --calls 400 --log training.jsonl
    python tests/faults/campaign.py points --part 0/2 --log points-0.jsonl
    python tests/faults/campaign.py count *.jsonl

Junk and kills come in slices, each with a seed of its own and in an interpreter of its own. Every storage call of a run
is a point, once as SIGKILL, once as ENOSPC, once as EIO; `--part 0/2` takes every other one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SLICE = {"api": 2500, "terminal": 100, "kills": 30}
POINTS = ("kill", "ENOSPC", "EIO")


def done(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def slices(kind: str, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Slices with seeds that the log does not have, until it holds as many calls as were asked for."""
    before = done(given.log)
    missing = given.calls - sum(line["calls"] for line in before)
    seed = max([given.seed - 1, *(line["seed"] for line in before)]) + 1
    while missing > 0:
        start = time.monotonic()
        counts, wrong = one_slice(kind, given.kind, min(SLICE[kind], missing), seed)
        calls = counts.get("kills", 0) if kind == "kills" else sum(counts.values())
        name = given.kind if kind == "kills" else kind
        yield {"what": name, "seed": seed, "calls": calls, "counts": counts, "wrong": wrong, "s": _since(start)}
        missing, seed = missing - calls, seed + 1
        if not calls:
            return


def one_slice(kind: str, where: str, calls: int, seed: int) -> tuple[dict[str, int], list[str]]:
    """How the calls ended, and what should not have been."""
    words = {
        "api": ["junk.py", "--calls", str(calls)],
        "terminal": ["junk.py", "--terminal", "--calls", str(calls)],
        "kills": ["kills.py", "--kind", where, "--kills", str(calls)],
    }[kind]
    command = [sys.executable, str(HERE / words[0]), *words[1:], "--seed", str(seed)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    if ran.returncode:
        return {}, [ran.stderr[-2000:]]
    *told, last = ran.stdout.splitlines()
    counts = json.loads(last)
    failed = [name for name in counts if kind == "kills" and name not in ("kills", "rounds") and counts[name]]
    return counts, [*told, *failed]


def points(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Points that the log does not have; `wrong` is empty where all is as promised."""
    from test_crash_points import FAULTS, Breaker, check

    part, parts = map(int, given.part.split("/"))
    before = {(line["fault"], line["at"]) for line in done(given.log)}
    with tempfile.TemporaryDirectory() as folder:
        breaker = Breaker(Path(folder))
        whole = breaker.ask(-1)
        assert whole["status"] == 0, whole
        calls = int(whole["told"].rpartition("calls ")[2])
        for at in range(part, calls, parts):
            for fault in POINTS:
                if (fault, at) in before:
                    continue
                start, wrong = time.monotonic(), []
                answer = breaker.ask(at, FAULTS[fault])
                try:
                    check(answer, whole, killed=fault == "kill")
                except AssertionError as problem:
                    wrong = [str(problem)[:4000], answer["told"][-2000:]]
                facts = {"status": answer["status"], "kept": answer.get("kept"), "of": calls}
                yield {"what": "point", "fault": fault, "at": at, **facts, "wrong": wrong, "s": _since(start)}
        breaker.close()


def _since(start: float) -> float:
    return round(time.monotonic() - start, 2)


def count(logs: list[Path]) -> dict[str, Counter[str]]:
    """What was tried, per kind; a point that was tried twice counts once."""
    found: dict[str, Counter[str]] = {}
    seen = set()
    for line in (line for log in logs for line in done(log)):
        totals = found.setdefault(line["what"] if line["what"] != "point" else f"point {line['fault']}", Counter())
        if line["what"] == "point":
            new = (line["fault"], line["at"]) not in seen
            seen.add((line["fault"], line["at"]))
            totals.update({f"exit {line['status']}": new, "points": new})
        else:
            totals.update(line["counts"])
        totals["wrong"] += bool(line["wrong"])
    return found


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = reader.add_subparsers(dest="what", required=True)
    for kind in ("api", "terminal", "kills", "points"):
        options = kinds.add_parser(kind)
        options.add_argument("--log", type=Path, required=True)
        options.add_argument("--calls", type=int, default=1000)
        options.add_argument("--seed", type=int, default=10_000)
        options.add_argument("--kind", choices=("local", "processes", "training"), default="local")
        options.add_argument("--part", default="0/1")
    kinds.add_parser("count").add_argument("logs", type=Path, nargs="+")
    given = reader.parse_args()
    if given.what == "count":
        for name, totals in count(given.logs).items():
            print(name, json.dumps(totals))
        return
    for line in points(given) if given.what == "points" else slices(given.what, given):
        with given.log.open("a") as file:
            print(json.dumps(line), file=file)


if __name__ == "__main__":
    main()
