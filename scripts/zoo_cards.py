"""Measure the cards of the built-in architectures, which `sandlab card` shows beside a user's.

    python scripts/zoo_cards.py --size quick --workers 16 --minutes 9
    python scripts/zoo_cards.py --size full --device cuda --workers 12 --minutes 9
    python scripts/zoo_cards.py --size quick --only lstm,rnn --again

Every architecture is measured in a process of its own, all of them at once, each with its share of the workers, and
writes one file, DIR/SIZE/NAME.json (by default where the package reads it). The same command goes on where it was
stopped: finished cards are left alone, unfinished ones are filled up, on another device too (each row then names its
own), trainings go on from the store.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from sandlab.lab._card.battery import BATTERY, tasks
from sandlab.lab._card.measure import REFERENCES, ZOO, Card, Reference, measure_card
from sandlab.lab._exec.executors import executor
from sandlab.lab._store.files import write_atomic
from sandlab.lab._store.store import Store
from sandlab.lab.laboratory import Laboratory, Progress

PARAMETERS = {"quick": 30_000, "full": 200_000}
SEEDS = {"quick": 3, "full": 5}
COST = {"transformer": 1, "lstm": 1, "ssm": 3, "hybrid": 4, "rnn": 1}  # of one training step, roughly
GRACE = 90.0  # seconds for processes to start, and to write down what they have
SILENCE = 15.0  # seconds between two lines of progress


def main(words: Sequence[str] | None = None) -> int:
    """Start one process per architecture, or be one of them; 0 when every card is complete."""
    options = _options(words)
    names = [name.strip() for name in options.only.split(",")] if options.only else list(REFERENCES)
    unknown = [name for name in names if name not in REFERENCES]
    if unknown:
        print(f"no architecture called {', '.join(unknown)}: there are {', '.join(REFERENCES)}", file=sys.stderr)
        return 2
    if len(names) == 1:
        return _measure_one(names[0], options)
    return _measure_all(names, options)


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(PARAMETERS), default="quick")
    parser.add_argument("--only", default="", help=f"some of {','.join(REFERENCES)}")
    parser.add_argument("--tasks", default="", help="some tasks of the battery, separated by commas")
    parser.add_argument("--seeds", type=int, default=None, help="trainings of each task (3 quick, 5 full)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes that train, together")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda, where all seeds of a task train at once")
    parser.add_argument("--minutes", type=float, default=None, help="stop after this time and write what there is")
    parser.add_argument("--again", action="store_true", help="measure finished cards anew")
    parser.add_argument("--store", default="runs/zoo", help="folder of the trainings")
    parser.add_argument("--out", type=Path, default=ZOO, help="folder of the cards (default: in the package)")
    return parser.parse_args(words)


def _measure_all(names: Sequence[str], options: argparse.Namespace) -> int:
    """One process per architecture; those that outlive the budget by far are ended."""
    given = ["--size", options.size, "--device", options.device, "--store", options.store, "--out", str(options.out)]
    given += ["--tasks", options.tasks] + (["--again"] if options.again else [])
    given += ["--seeds", str(options.seeds)] if options.seeds else []
    given += ["--minutes", str(options.minutes)] if options.minutes else []
    whole = sum(COST[name] for name in names)
    started = {}
    for name in names:
        workers = max(1, round(options.workers * COST[name] / whole))
        command = [sys.executable, __file__, *given, "--only", name, "--workers", str(workers)]
        started[name] = subprocess.Popen(command)
    end = time.monotonic() + 60 * options.minutes + GRACE if options.minutes else None
    codes = {name: _wait(process, end) for name, process in started.items()}
    unfinished = [name for name, code in codes.items() if code]
    print(f"complete: {len(names) - len(unfinished)} of {len(names)} cards", flush=True)
    if unfinished:
        print(f"unfinished: {', '.join(unfinished)}; the same command goes on from there", flush=True)
    return 1 if unfinished else 0


def _wait(process: subprocess.Popen[bytes], end: float | None) -> int:
    try:
        return process.wait(None if end is None else max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _measure_one(name: str, options: argparse.Namespace) -> int:
    """Train what the card lacks, and write it; 0 when the card is complete."""
    seeds = options.seeds or SEEDS[options.size]
    asked = [task.strip() for task in options.tasks.split(",") if task.strip()]
    file = options.out / options.size / f"{name}.json"
    before = None if options.again else _read(file, seeds)
    wanted = [task.name for task in tasks(options.size) if not asked or task.name in asked]
    have = {row.task for row in before.rows} if before else set()
    missing = [task for task in wanted if task not in have]
    if not missing:
        print(f"{name}: complete", flush=True)
        return 0
    begin = time.monotonic()
    budget = 60 * options.minutes if options.minutes else None
    place = executor("local" if options.workers == 1 else f"processes:{options.workers}")
    try:
        lab = Laboratory(
            Store.open(options.store), place, device=options.device, budget=budget, progress=_teller(name, begin)
        )
        card = _measure(name, lab, options.size, seeds, missing)
    finally:
        place.close()
    card = _joined(before, card)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, (card.to_json() + "\n").encode())
    told = f"left out: {', '.join(card.left_out)}" if card.left_out else "complete"
    print(f"{name}: {len(card.rows)} rows, {told}, {time.monotonic() - begin:.0f} s → {file}", flush=True)
    return 1 if set(card.left_out) & set(wanted) else 0


def _measure(name: str, lab: Laboratory, size: str, seeds: int, missing: list[str]) -> Card:
    """The missing tasks, all at once; one after the other when one of them fails, so that the others are kept."""
    config = Reference(name, PARAMETERS[size])
    try:
        return measure_card(name, config, lab, size=size, seeds=seeds, only=missing)
    except Exception as problem:
        print(f"{name}: {problem}; going through the tasks one by one", file=sys.stderr, flush=True)
    card = None
    for task in missing:
        try:
            card = _joined(card, measure_card(name, config, lab, size=size, seeds=seeds, only=[task]))
        except Exception as problem:
            print(f"{name}: {task} failed: {problem}", file=sys.stderr, flush=True)
    if card is None:
        raise SystemExit(f"{name}: every task failed")
    return _joined(card, card)


def _joined(before: Card | None, card: Card) -> Card:
    """The rows of both in the battery's order; what neither has is left out. Rows of two devices name theirs."""
    cards = [each for each in (before, card) if each]
    rows = {(row.task, row.test): replace(row, device=row.device or each.device) for each in cards for row in each.rows}
    battery = tasks(card.size)
    order = [(task.name, test.label) for task in battery for test in task.tests]
    devices = list(dict.fromkeys(row.device for row in rows.values()))
    if len(devices) == 1:
        rows = {place: replace(row, device="") for place, row in rows.items()}
    return replace(
        card,
        rows=[rows[place] for place in order if place in rows],
        left_out=[task.name for task in battery if task.name not in {name for name, _ in rows}],
        device=" and ".join(devices) or card.device,
        made="; ".join(dict.fromkeys(made for each in cards for made in each.made.split("; "))),
    )


def _read(file: Path, seeds: int) -> Card | None:
    """The card of an earlier call, where its numbers may stand beside new ones (of another device, too)."""
    if not file.is_file():
        return None
    card = Card.from_dict(json.loads(file.read_text(encoding="utf-8")))
    return card if (card.battery, card.seeds) == (BATTERY, seeds) else None


def _teller(name: str, begin: float) -> Callable[[Progress], None]:
    """Prints the number of finished jobs, not too often."""
    last = {"time": -SILENCE, "done": -1}

    def tell(progress: Progress) -> None:
        now = time.monotonic() - begin
        if progress.done != last["done"] and (now - last["time"] >= SILENCE or progress.done == progress.total):
            print(f"{name}: {progress.done} of {progress.total} trainings, {now:.0f} s", flush=True)
            last.update(time=now, done=progress.done)

    return tell


if __name__ == "__main__":
    sys.exit(main())
