"""Training: populations against the plain loop that trains one model after another, in the same run.

    python benchmarks/training.py [--device cpu|cuda] [--json FILE] [--budget SECONDS]

The plain loop is what a first script does: an ordinary module, a batch, `backward`, `torch.optim.AdamW`, one model
after another. The unit is model-steps per second (members × steps / seconds), data generation included on both sides.
On a CPU seconds of CPU time on one thread are counted, the best of several runs that alternate between the two sides:
on a machine with other work, wall time measures the other work. The GPU part is in training_gpu.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import sandlab as sl
from sandlab.learning._engine.population_step import LARGE
from sandlab.learning.objectives import LastLabel, member_loss

SIZES = (1, 8, 64, 256, 1024)
BASELINE = "the plain loop"
QUICK = {"patience": 0.3, "sizes": (1, 8, 64)}
LENGTH = 32
SETTINGS = {"vocab": 3, "length": LENGTH, "outputs": 3, "layers": 2, "width": 32, "heads": 2, "hidden": (64, 64)}
WORLD = sl.worlds.InContextMarkov(states=3, order=1, length=LENGTH)


def small_transformer(seed: int = 0) -> nn.Module:
    """Small enough that 1024 members train on a CPU in the time of a benchmark."""
    return sl.models.Transformer(vocab=3, length=LENGTH, layers=2, heads=1, width=16)


def zoo() -> dict[str, Callable[[int], nn.Module]]:
    """Every model that maps tokens to classes, at one size."""

    def factory(name: str) -> Callable[[int], nn.Module]:
        kind = sl.get("models", name)
        known = {field.name for field in dataclasses.fields(kind.config_class)}
        settings = {key: value for key, value in SETTINGS.items() if key in known}
        if name == "disentangled-transformer":
            settings["heads"] = (1, 1)
        return lambda seed: kind(**settings)

    batch, found = WORLD.sample(2, rng=sl.rng(0)), {}
    for name in sl.names("models"):
        try:
            logits = factory(name)(0)(batch.inputs)
        except (sl.BadInput, RuntimeError, TypeError, AttributeError):
            continue  # not a model of token sequences
        if logits.shape[0] == 2 and logits.shape[-1] == 3:
            found[name] = factory(name)
    return found


def plain_loop(factory: Callable[[int], nn.Module], members: int, steps: int, batch_size: int) -> None:
    """One model after another, the ordinary way."""
    goal = LastLabel()
    for seed in range(members):
        with sl.models.seeded(seed):
            model = factory(seed)
        optimizer, rng = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0), sl.rng(1)
        for _ in range(steps):
            batch = WORLD.sample(batch_size, rng=rng)
            logits = model(batch.inputs)
            if logits.shape[1] == 1:
                loss = member_loss(logits, goal.prepare(batch, rng))
            else:
                loss = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def population(factory: Callable[[int], nn.Module], members: int, steps: int, batch_size: int) -> str:
    """The same members together; returns how they are computed on a CPU."""
    population = sl.learning.Population(factory, seeds=range(members))
    last = population(WORLD.sample(1, rng=sl.rng(0)).inputs).shape[-2] == 1
    sl.learning.train(
        population,
        WORLD,
        steps=steps,
        batch_size=batch_size,
        rng=sl.rng(1),
        objective="last-label" if last else None,
        progress=False,
    )
    if members == 1 or sum(population.layout.widths) > LARGE:
        return "sequential"
    return "native" if population.carries_members else "vmap"


def cpu_seconds(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def compare(
    name: str, factory: Callable[[int], nn.Module], members: int, batch_size: int, patience: float = 3.0
) -> dict[str, Any]:
    """Model-steps per second of the population and of the plain loop: the best of runs that alternate.

    The plain loop's cost is proportional to the number of members, so it runs at most eight of them.
    """
    few = min(members, 8)
    strategy = population(factory, members, 2, batch_size)
    plain_loop(factory, 1, 2, batch_size)
    once = cpu_seconds(lambda: plain_loop(factory, 1, 4, batch_size)) / 4
    steps = max(8, min(40, int(patience / 6 / (once * few))))
    own_steps = max(4, min(steps, int(patience / 3 / (once * members))))
    plain = ours = float("inf")
    start = time.process_time()
    while time.process_time() - start < patience or plain == float("inf"):
        plain = min(plain, cpu_seconds(lambda: plain_loop(factory, few, steps, batch_size)) / (few * steps))
        ours = min(
            ours, cpu_seconds(lambda: population(factory, members, own_steps, batch_size)) / (members * own_steps)
        )
    return {
        "name": name,
        "unit": "model-steps/s",
        "ours": 1 / ours,
        "baseline": 1 / plain,
        "ratio": plain / ours,
        "members": members,
        "computed": strategy,
    }


def measure(patience: float = 3.0, sizes: tuple[int, ...] = SIZES) -> Iterator[dict[str, Any]]:
    """On this CPU: population sizes of a small transformer, then eight members of every model of the zoo."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for members in sizes:
            yield compare(f"{members} small transformers", small_transformer, members, 8, patience)
        for name, factory in zoo().items():
            yield compare(f"8 × {name}", factory, 8, 32, patience)
    finally:
        torch.set_num_threads(threads)


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as text."""
    lines = [f"{'':34} {'ours':>12} {'plain loop':>12} {'ratio':>8}  computed"]
    for row in rows:
        numbers = f"{row['ours']:12.1f} {row['baseline']:12.1f} {row['ratio']:7.2f}×"
        lines.append(f"{row['name']:34} {numbers}  {row.get('computed', '')}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Populations against the plain training loop.")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--json", help="write the measurements to this file")
    parser.add_argument("--budget", type=float, default=230.0, help="seconds for the GPU part")
    given = parser.parse_args()
    if given.device == "cuda":
        import training_gpu

        training_gpu.run(given.json, given.budget)
        return
    rows = list(measure())
    print(table(rows))
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
