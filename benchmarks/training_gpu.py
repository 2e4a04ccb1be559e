"""The GPU part of training.py: how many times the plain loop a population reaches, and how close its curves stay.

Model: two layers, width 64, one head, feed-forward 256 (106 k weights); batch 64 × length 64 of in-context Markov
chains, generated on the device by both sides. The most telling measurements come first; what does not fit into the
budget is left out and said so. Every variant is tried on its own: one that fails prints its trace and the rest go on.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import sandlab as sl
from sandlab.learning._engine.population_step import PopulationStep
from sandlab.learning._engine.precision import computing
from sandlab.learning._engine.sources import Source
from sandlab.learning._engine.step import UpdateRule
from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.optim import Adam
from sandlab.learning.schedules import factors

WORLD = sl.worlds.InContextMarkov(states=3, order=1, length=64)
BATCH, STEPS, RATE = 64, 500, 1e-3
DEVICE = torch.device("cuda")


def model(seed: int = 0) -> nn.Module:
    return sl.models.Transformer(vocab=3, length=64, layers=2, heads=1, width=64)


@dataclass(frozen=True)
class Variant:
    """One way to carry out a population's step."""

    precision: str = "tf32"
    compile: bool = True
    fused: bool = False
    graph: bool = True
    mode: str | None = None

    def __str__(self) -> str:
        words = [self.precision, (self.mode or "compiled") if self.compile else "as written"]
        words += ["fused attention" if self.fused else "explicit attention"]
        return ", ".join([*words, "recorded" if self.graph else "from Python"])


VARIANTS = [
    Variant(compile=False, fused=True),
    Variant(compile=True, fused=False),
    Variant(compile=True, fused=True),
    Variant(compile=False, fused=False),
]


class Clock:
    """What is left of the budget."""

    def __init__(self, budget: float) -> None:
        self.end = time.monotonic() + budget

    @property
    def left(self) -> float:
        return self.end - time.monotonic()


def plain_run(seed: int, steps: int, *, rng_seed: int = 1) -> list[float]:
    """The ordinary loop on the GPU; the losses are read once, at the end."""
    with sl.models.seeded(seed):
        member = model().to(DEVICE)
    optimizer, rng = torch.optim.AdamW(member.parameters(), lr=RATE, weight_decay=0.0), sl.rng(rng_seed, device="cuda")
    losses = []
    for _ in range(steps):
        batch = WORLD.sample(BATCH, rng=rng)
        loss = F.cross_entropy(member(batch.inputs).flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def seconds(function: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def plain_speed() -> float:
    """Steps per second of the plain loop, the median of three."""
    plain_run(0, 20)
    return 60 / statistics.median(seconds(lambda: plain_run(0, 60)) for _ in range(3))


def make(members: int, variant: Variant) -> tuple[PopulationStep, Source]:
    """A population ready to step."""
    population = sl.learning.Population(model, seeds=range(members), strategy="native").to(DEVICE)
    rates = torch.full((members,), RATE, dtype=torch.float64)
    rule = UpdateRule(Adam(), rates, torch.zeros_like(rates), factors("constant", STEPS + 100))
    step = PopulationStep(population, CrossEntropy(), rule)
    source = Source(WORLD, BATCH, sl.rng(1, device="cuda"), CrossEntropy(), DEVICE)
    if variant.fused:
        step.fuse_attention()
    if variant.compile:
        step.compile(variant.mode)
    if variant.graph:
        step.record(source)
    return step, source


def speed(members: int, variant: Variant, plain: float, patience: float = 2.5) -> dict[str, Any]:
    """Model-steps per second of one variant, how long it took to get ready, its memory, the data's share of a step."""
    torch.compiler.reset()
    torch.cuda.reset_peak_memory_stats()
    with computing(variant.precision, DEVICE):
        begun = time.perf_counter()
        step, source = make(members, variant)
        step.advance(source, 0, 2)
        ready = time.perf_counter() - begun
        once = seconds(lambda: step.advance(source, 2, 4)) / 4
        count = max(4, min(400, int(patience / max(once, 1e-5))))
        step.clock.zero_()
        each = seconds(lambda: step.advance(source, 0, count)) / count
    return {
        "name": f"{members} members, {variant}",
        "unit": "model-steps/s",
        "ours": members / each,
        "baseline": plain,
        "ratio": members / each / plain,
        "members": members,
        "step ms": 1e3 * each,
        "ready s": ready,
        "memory GiB": torch.cuda.max_memory_allocated() / 2**30,
        "data share": data_seconds() / each,
        "steps per replay": 1 if step.recording is None else step.recording.chain,
        "data recorded": step.recording is not None and step.recording.batch is None,
    }


_data: list[float] = []


def data_seconds() -> float:
    """Seconds that drawing one batch takes inside a recorded step."""
    if not _data:
        rng = sl.rng(7, device="cuda")
        for _ in range(3):
            WORLD.sample(BATCH, rng=rng)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(rng)
        with torch.cuda.graph(graph):
            for _ in range(10):
                WORLD.sample(BATCH, rng=rng)
        graph.replay()
        _data.append(seconds(lambda: [graph.replay() for _ in range(20)]) / 200)
    return _data[0]


def plain_curves(found: dict[int, list[float]]) -> dict[str, Any]:
    """The reference: three seeds one after another in float32, and one of them again to see what repeating changes."""
    for seed in (0, 7, 255):
        found[seed] = plain_run(seed, STEPS)
    again = np.abs(np.array(plain_run(0, STEPS)) - np.array(found[0])).max()
    return {"name": "plain loop, the same seed twice", "unit": "largest |difference|", "ours": float(again)}


def curves(variant: Variant, plain: dict[int, list[float]], members: int) -> dict[str, Any]:
    """Largest distance between the loss curves of some members of a population and of the same seeds alone."""
    torch.compiler.reset()
    with computing(variant.precision, DEVICE):
        step, source = make(members, variant)
        step.advance(source, 0, STEPS)
    losses = step.losses[:STEPS].double().cpu().numpy()
    gaps = {seed: np.abs(losses[:, seed] - np.array(alone)) for seed, alone in plain.items()}
    worst = max(float(gap.max()) for gap in gaps.values())
    return {
        "name": f"curves of {members} members, {variant}",
        "unit": "largest |difference of losses| over 500 steps",
        "ours": worst,
        "mean": float(np.mean([gap.mean() for gap in gaps.values()])),
        "first 100 steps": max(float(gap[:100].max()) for gap in gaps.values()),
        "final losses": {seed: [float(losses[-1, seed]), alone[-1]] for seed, alone in plain.items()},
        "generator agrees": bool(
            np.allclose([losses[0, seed] for seed in plain], [v[0] for v in plain.values()], atol=1e-3)
        ),
    }


def attempt(rows: list[dict[str, Any]], what: str, function: Callable[[], dict[str, Any]], file: str | None) -> Any:
    """Run one measurement, print it, keep it; a failure prints its trace and leaves the others alone."""
    begun = time.monotonic()
    try:
        row = function()
    except Exception:
        print(f"--- {what} failed:\n{traceback.format_exc(limit=12)}", flush=True)
        row = {"name": what, "failed": traceback.format_exc(limit=4)}
    gc.collect()
    torch.cuda.empty_cache()
    row["took s"] = time.monotonic() - begun
    rows.append(row)
    print(describe(row), flush=True)
    if file:
        with open(file, "w") as sink:
            json.dump({"machine": machine(), "rows": rows}, sink, indent=1)
    return row


def describe(row: dict[str, Any]) -> str:
    if "ratio" in row:
        more = f"{row['step ms']:8.3f} ms/step, data {100 * row['data share']:.1f} %, {row['memory GiB']:.1f} GiB"
        return f"{row['name']:74} {row['ours']:10.0f} {row['ratio']:7.1f}×  {more}, ready in {row['ready s']:.0f} s"
    numbers = ", ".join(f"{k} {v:.3g}" for k, v in row.items() if isinstance(v, float))
    return f"{row['name']:74} {numbers}"


def machine() -> dict[str, str]:
    return {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": str(torch.version.cuda)}


def run(file: str | None, budget: float) -> list[dict[str, Any]]:
    """Everything, the most telling first, within the budget."""
    clock, rows = Clock(budget), []
    print(machine(), flush=True)
    plain = plain_speed()
    base = {"name": "plain loop", "unit": "model-steps/s", "ours": plain, "data ms": 1e3 * data_seconds()}
    attempt(rows, "plain loop", lambda: base, file)
    tried = [attempt(rows, str(variant), lambda v=variant: speed(256, v, plain), file) for variant in VARIANTS[:3]]
    ratios = [row.get("ratio", 0.0) for row in tried]
    best = VARIANTS[int(np.argmax(ratios))]
    alone: dict[int, list[float]] = {}
    attempt(rows, "plain curves", lambda: plain_curves(alone), file)
    attempt(rows, f"curves, {best}", lambda: curves(best, alone, 256), file)
    exact = Variant("float32", best.compile and clock.left > 90, best.fused)
    later: list[tuple[str, float, Callable[[], dict[str, Any]]]] = [
        ("float32", 20, lambda: speed(256, exact, plain)),
        ("64 members", 45, lambda: speed(64, best, plain)),
        ("bf16", 45, lambda: speed(256, Variant("bf16", best.compile, best.fused), plain)),
        ("curves, float32", 30, lambda: curves(exact, alone, 256)),
        ("1024 members", 45, lambda: speed(1024, best, plain)),
        ("8 members", 45, lambda: speed(8, best, plain)),
        ("1 member", 45, lambda: speed(1, best, plain)),
        ("curves, bf16", 40, lambda: curves(Variant("bf16", best.compile, best.fused), alone, 256)),
        ("as written, explicit", 15, lambda: speed(256, VARIANTS[3], plain)),
        ("tuned", 150, lambda: speed(256, Variant(fused=best.fused, mode="max-autotune-no-cudagraphs"), plain)),
    ]
    for name, needs, function in later:
        cheap = not best.compile
        if clock.left < (8 if cheap else needs):
            print(f"--- left out for lack of time: {name}", flush=True)
            continue
        attempt(rows, name, function, file)
    print(f"best at 256 members: {max(ratios):.1f} × the plain loop ({best})", flush=True)
    return rows
