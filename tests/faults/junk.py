"""Junk at the door: calls with arguments that no one should give, at the Python API and at the terminal.

    python tests/faults/junk.py --calls 10000            the API
    python tests/faults/junk.py --terminal --calls 2000  the terminal
    python tests/faults/junk.py --every other            each argument with each junk value (or --every lenses, …)

Each call runs in a forked process with 3 GB of memory and 20 seconds of its processor (the machine may be busy). It may
end with a result, with `BadInput`, or (for worlds without a certain truth) with `NotImplementedError`; at the terminal
with a documented exit code and no traceback. The rest is counted as raw, with the place.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import decimal
import inspect
import io
import json
import os
import random
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SECONDS, PATIENCE, BYTES, CHUNK = 20.0, 400.0, 3 << 30, 40
KINDS = ("worlds", "models", "circuits", "decoders", "lenses", "other")
Call = tuple[str, Callable[[], object]]
Judge = Callable[[Callable[[], object]], str]


def values() -> list[Any]:
    """What may stand in place of any argument."""
    import numpy as np
    import torch

    numbers = [0, 1, 2, 3, -1, 7, 100_000, 10_000_000, 10**9, 2**31, 2**63, 2**64, 10**30, -(10**9), 10**400]
    floats = [0.0, -0.0, 0.5, -0.5, 1.5, 1e300, float("nan"), float("inf"), -float("inf")]
    words = ["", "x", "1", "nan", "false", "no", "\0", "\ud800", "é☃", "../../etc/passwd", "a" * 5000, "adamw", "auto"]
    lists = [[], [None], [[]], ["a", 1], (1, 1, 1), (0.5,), ((0.5, 0.6), (0.5, 0.5)), {}, set(), {"a": 1}, range(0)]
    arrays = [np.zeros((0, 5)), np.array([np.nan, 1.0]), np.array(3), np.int64(-3), np.float64("nan"), np.array(["a"])]
    tensors = [torch.zeros(0), torch.tensor([-1, 5]), torch.tensor(True), torch.ones(3, 3, 3), torch.full((2, 2), 0.5)]
    odd = [None, True, False, b"abc", 1j, decimal.Decimal("1.5"), object(), print, lambda *_: 1, int, io.StringIO("x")]
    return [*numbers, *floats, *words, *lists, *arrays, *tensors, *odd]


def calls(count: int, seed: int) -> Iterator[Call]:
    """Described calls: registered things with one to three arguments replaced by junk, and the API besides them."""
    rng = random.Random(seed)
    targets = list(_registered()) + list(_others())
    for _ in range(count):
        kind, name, make, fields = rng.choice(targets)
        chosen = rng.sample(fields, min(len(fields), rng.choice((1, 1, 1, 2, 3)))) if fields else []
        junk = {field: rng.choice(values()) for field in chosen}
        if rng.random() < 0.03:
            junk["no_such_option"] = 1
        yield _call(kind, name, make, junk)


def every_call(kind: str) -> Iterator[Call]:
    """Each argument of all things of a kind with each junk value, the others as usual; and an unknown keyword."""
    for name, make, fields in (target[1:] for target in (*_registered(), *_others()) if target[0] == kind):
        yield _call(kind, name, make, {"no_such_option": 1})
        for field in fields:
            for index in range(len(values())):
                yield _call(kind, name, make, {field: values()[index]})


def _call(kind: str, name: str, make: Callable[[dict], object], junk: dict[str, Any]) -> Call:
    words = ", ".join(f"{field}={_short(value)}" for field, value in junk.items())
    return f"{kind} {name}({words})", lambda: make(junk)


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"huge {type(value).__name__}"
    return (text if len(text) <= 60 else f"{text[:60]}…").encode("ascii", "replace").decode()


def _registered() -> Iterator[tuple[str, str, Callable[[dict], object], list[str]]]:
    import sandlab as sl

    for kind in KINDS[:-1]:
        for name in sl.names(kind):
            thing = sl.get(kind, name)
            owner = getattr(thing, "config_class", thing) if kind == "models" else thing
            fields = _named(owner)
            yield kind, name, _maker(kind, thing), [*fields, "sample n"] if kind == "worlds" else fields


def _named(thing: Any) -> list[str]:
    """Parameters that can be given by name."""
    listed = inspect.signature(thing).parameters.values()
    return [each.name for each in listed if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def _maker(kind: str, thing: Any) -> Callable[[dict], object]:
    import torch

    import sandlab as sl

    needed = {"vocab": 3, "length": 8, "inputs": 3, "outputs": 3, "states": 3}
    world = sl.worlds.InContextMarkov(states=3, order=1, length=8)
    usual = {**needed, "rng": sl.rng(0), "world": world, "machine": sl.worlds.read_machine("(ab)*")}
    usual |= {"model": sl.models.Transformer(vocab=3, length=8, width=8), "batch": world.sample(2, rng=sl.rng(0))}
    owner = getattr(thing, "config_class", thing) if kind == "models" else thing
    required = [
        each.name
        for each in inspect.signature(owner).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]

    def make(junk: dict[str, Any]) -> object:
        n = junk.pop("sample n", 2)
        given = {name: usual.get(name, 2) for name in required if name != "self"}
        made = thing(**{**given, **junk})
        if kind == "worlds":
            return made.sample(n, rng=sl.rng(0))
        if kind in ("models", "circuits") and isinstance(made, torch.nn.Module) and given.get("length", 8) == 8:
            return made
        return made

    return make


def _others() -> Iterator[tuple[str, str, Callable[[dict], object], list[str]]]:
    """Training, loading, recording, reading: what is no thing of a registry."""
    import sandlab as sl
    from sandlab.lab._store.store import Store
    from sandlab.worlds.automata.reading import read_machine

    world = sl.worlds.InContextMarkov(states=3, order=1, length=8)
    machine = read_machine("(ab)*")
    model = sl.models.Transformer(vocab=3, length=8, width=8)
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"junk-{os.getpid()}"

    def usual(function: Callable[..., object], **given: Any) -> Callable[[dict], object]:
        return lambda junk: function(**{**given, **junk})

    things: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
        "train": (sl.learning.train, {"model": model, "world": world, "steps": 1, "rng": sl.rng(0), "batch_size": 2}),
        "evaluate": (sl.learning.evaluate, {"model": model, "world": world, "examples": 2, "rng": sl.rng(0)}),
        "Population": (sl.learning.Population, {"factory": lambda seed: model, "seeds": [0]}),
        "Checkpoint": (sl.learning.Checkpoint, {"path": folder / "x"}),
        "models.load": (sl.models.load, {"folder": folder}),
        "record": (_recorded, {"model": model, "gradients": False}),
        "rng": (sl.rng, {"seed": 0}),
        "get": (sl.get, {"kind": "worlds", "name": "dyck"}),
        "read_machine": (read_machine, {"text": "(ab)*"}),
        "compile": (sl.circuits.compile, {"machine": machine, "length": 4}),
        "Store": (Store, {"folder": folder}),
        "to_parquet": (sl.worlds.to_parquet, {"world": world, "path": folder / "x", "examples": 2, "rng": sl.rng(0)}),
        "WorldDataset": (sl.worlds.WorldDataset, {"world": world, "seed": 0}),
        "run": (sl.run, {"name": "markov/hessian", "device": "cuda:9", "store": folder, "progress": False}),
        "accepts": (sl.worlds.Dyck().accepts, {"tokens": None}),
        "forward": (lambda inputs, **options: model(inputs, **options), {"inputs": None}),
        "Curriculum": (sl.learning.Curriculum, {"stages": ((0, world),)}),
    }  # fmt: skip
    for name, (function, given) in things.items():
        yield "other", name, usual(function, **given), sorted({*given, *_named(function)})


def _recorded(model: Any, pattern: Any = "*", **options: Any) -> object:
    import sandlab as sl

    with sl.record(model, pattern, **options) as cache:
        return cache


def attempt(call: Callable[[], object]) -> str:
    """How a call ends, in a word or with the place of a raw error."""
    from sandlab.errors import BadInput

    try:
        silent = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
        with warnings.catch_warnings(), silent[0], silent[1]:
            warnings.simplefilter("ignore")
            call()
        return "success"
    except BadInput:
        return "BadInput"
    except FloatingPointError:
        return "Diverged"
    except NotImplementedError:
        return "NotImplementedError"
    except _Late:
        return "hang"
    except BaseException as problem:
        frames = [f for f in traceback.extract_tb(problem.__traceback__) if "/sandlab/" in f.filename]
        inner = [f for f in frames if not f.filename.endswith("checking.py")] or frames
        place = f"{inner[-1].filename.split('/sandlab/')[-1]}:{inner[-1].lineno}" if inner else "(signature)"
        return f"raw {type(problem).__name__} at {place}: {str(problem).splitlines()[0][:90] if str(problem) else ''}"


class _Late(BaseException):
    pass


def _alarm(*_: object) -> None:
    raise _Late


def run(count: int, seed: int = 0, chunk: int = CHUNK, seconds: float = float("inf")) -> collections.Counter[str]:
    """The ends of `count` calls, each chunk of them in a process of its own; fewer when the seconds are over."""
    return run_listed(list(calls(count, seed)), chunk, attempt, seconds)


def run_listed(listed: list[Call], chunk: int, judge: Judge, seconds: float = float("inf")) -> collections.Counter[str]:
    """The ends of these calls; the first word of an end that should not be is "raw"."""
    ends: collections.Counter[str] = collections.Counter()
    start, until = 0, time.monotonic() + seconds
    while start < len(listed) and time.monotonic() < until:
        start = _run_chunk(listed, start, min(start + chunk, len(listed)), ends, judge)
    return ends


def _run_chunk(listed: list[Call], start: int, end: int, ends: collections.Counter[str], judge: Judge) -> int:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _serve(listed[start:end], writing, judge)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        done, last = start, time.monotonic()
        while done < end:
            ready, _, _ = select.select([answers], [], [], PATIENCE - (time.monotonic() - last))
            line = answers.readline() if ready else b""
            if not line:
                os.kill(child, signal.SIGKILL)
                ends["hang" if not ready else "killed"] += 1
                _tell(listed[done][0], "hang" if not ready else "killed (memory?)")
                done += 1
                break
            answer = json.loads(line)
            ends[answer if answer.split()[0] != "raw" else "raw"] += 1
            if answer.split()[0] in ("raw", "hang"):
                _tell(listed[done][0], answer)
            done, last = done + 1, time.monotonic()
    os.waitpid(child, 0)
    return done


def _tell(what: str, how: str) -> None:
    print(f"{how}   <-   {what}", flush=True)


def _serve(chunk: list[Call], pipe: int, judge: Judge) -> None:
    """Run calls and write how each ends; never returns."""
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
        signal.signal(signal.SIGPROF, _alarm)
        for _, call in chunk:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                end = judge(call)
            except _Late:
                end = "hang"
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.write(pipe, (json.dumps(end) + "\n").encode())
    finally:
        os._exit(0)


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--calls", type=int, default=1000)
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--terminal", action="store_true")
    reader.add_argument("--every", choices=KINDS)
    reader.add_argument("--seconds", type=float, default=float("inf"))
    given = reader.parse_args()
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(Path(__file__).parent.resolve()))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # some words are names of files to write
        print(json.dumps(dict(ends(given))))


def ends(given: argparse.Namespace) -> collections.Counter[str]:
    """How the calls end that were asked for."""
    if given.every:
        return run_listed(list(every_call(given.every)), CHUNK, attempt, given.seconds)
    if given.terminal:
        import terminal

        return terminal.run(given.calls, given.seed, seconds=given.seconds)
    return run(given.calls, given.seed, seconds=given.seconds)


if __name__ == "__main__":
    main()
