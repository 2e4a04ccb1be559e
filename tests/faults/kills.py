"""kill −9 at random moments, again and again, until each study or training is done; then the bits are compared.

    python tests/faults/kills.py --kind local --kills 500
    python tests/faults/kills.py --kind processes --kills 100
    python tests/faults/kills.py --kind training --kills 400

Processes are forked from a warm one. Counted: kills, rounds, results lost, stored results that are computed again, runs
written twice, indices that miss a row, results that differ in a bit, tracebacks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import toys

import sandlab as sl
from sandlab.lab._store.store import Store

PLAN = {"seeds": 8, "pause": 0.02}


def forked(work: Callable[[], None], told: Path, limit: float) -> int | None:
    """Run in a fork and kill it after `limit` seconds: its exit status, None when it was killed."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        screen = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(screen, 1)
        os.dup2(screen, 2)
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else None


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def stored(store: Path) -> set[str]:
    return set(Store(store).cache.stored()) if store.is_dir() else set()


def study_round(folder: Path, on: str, rng: random.Random, longest: float, left: int, counts: Counter[str]) -> object:
    """Kill a study until it is done; returns what it found."""
    store, told, log = folder / "runs", folder / "told", folder / "log"
    os.environ[toys.LOG] = str(log)

    def work() -> None:
        sl.run(toys.study, store=store, on=on, settings=PLAN, progress=False)

    status: int | None = None
    kills = 0
    while status is None:
        before = stored(store)
        first = len(lines(log))
        status = forked(work, told, rng.uniform(0.0, longest) if kills < left else 300.0)
        kills += status is None
        counts["lost"] += len(before - stored(store))
        seeds = _seeds(store, before)
        begun = (
            [line for line in log.read_text().splitlines()[first:] if line.startswith("start")] if log.exists() else []
        )
        counts["computed again"] += sum(int(line.split()[1]) in seeds for line in begun)
    counts["kills"] += kills
    counts["tracebacks"] += "Traceback" in told.read_text() or status != 0
    opened = Store.open(store)
    counts["run folders too many"] += len(opened.records()) - 1
    rows = {table: len(opened.index.rows(f"select * from {table}")) for table in ("runs", "findings", "jobs")}
    counts["index incomplete"] += rows != {"runs": 1, "findings": 2, "jobs": PLAN["seeds"]}
    (record,) = opened.records()[-1:]
    return record.read("findings.json"), record.read("tables.json"), (record.path / "figures/means.svg").read_text()


def _seeds(store: Path, keys: set[str]) -> set[int]:
    """Seeds of the jobs whose results are stored."""
    files = [Store(store).cache.path(key) for key in keys]
    return {json.loads(file.read_text())["entry"]["config"]["fields"]["seed"] for file in files}


def training_round(folder: Path, rng: random.Random, longest: float, left: int, counts: Counter[str]) -> object:
    """Kill a training until it is done; returns its weights and losses."""
    told, file, out = folder / "told", folder / "run.safetensors", folder / "out.pt"
    world = sl.worlds.InContextMarkov(states=3, order=1, length=8)

    def work() -> None:
        with sl.models.seeded(0):
            model = sl.models.Transformer(vocab=3, length=8, layers=1, width=8, dropout=0.1)
        checkpoint = sl.learning.Checkpoint(file, every=3)
        options = {"steps": 60, "batch_size": 8, "evaluate": world.sample(8, rng=sl.rng(9)), "every": 10, "ema": 0.9}
        history = sl.learning.train(model, world, rng=sl.rng(1), checkpoint=checkpoint, progress=False, **options)
        torch.save({"weights": model.state_dict(), "loss": history.loss, "metrics": history.metrics}, out)

    status: int | None = None
    kills = 0
    while status is None:
        status = forked(work, told, rng.uniform(0.0, longest) if kills < left else 300.0)
        kills += status is None
    counts["kills"] += kills
    counts["tracebacks"] += "Traceback" in told.read_text() or status != 0
    counts["parts left"] += len(list(folder.glob("*.part"))) + len(list(folder.glob(".*.part")))
    saved = torch.load(out, weights_only=False)
    weights = {name: value.tolist() for name, value in saved["weights"].items()}
    metrics = {name: value.tolist() for name, value in saved["metrics"].items()}
    return weights, saved["loss"].tolist(), metrics


def run(kind: str, kills: int, seed: int = 0, seconds: float = float("inf")) -> Counter[str]:
    """Rounds until so many kills are done, or the seconds are over; the first round is one without."""
    rng, counts = random.Random(seed), Counter({"kills": 0})
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    longest = {"local": 0.5, "processes": 4.0, "training": 0.6}[kind]
    expected, until = None, time.monotonic() + seconds
    while expected is None or (counts["kills"] < kills and time.monotonic() < until):
        with tempfile.TemporaryDirectory() as folder:
            left = 0 if expected is None else min(6, kills - counts["kills"])
            if kind == "training":
                found = training_round(Path(folder), rng, longest, left, counts)
            else:
                on = "local" if kind == "local" else "processes:2"
                found = study_round(Path(folder), on, rng, longest, left, counts)
        expected = found if expected is None else expected
        counts["different"] += found != expected
        counts["rounds"] += 1
    return counts


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--kind", choices=("local", "processes", "training"), default="local")
    reader.add_argument("--kills", type=int, default=50)
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--seconds", type=float, default=float("inf"))
    given = reader.parse_args()
    print(json.dumps(run(given.kind, given.kills, given.seed, given.seconds)))


if __name__ == "__main__":
    main()
