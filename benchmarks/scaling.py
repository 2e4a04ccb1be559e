"""How cost grows with length, number of states and number of members: seconds on log–log axes, with fitted exponents.

    python benchmarks/scaling.py [--json FILE] [--figure FILE.svg]

The exponent is the slope of log(seconds) over log(size) in the larger half of the sizes, by least squares: at small
sizes the fixed cost of calling operations hides the growth. CPU seconds on one thread, best of several calls.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import sandlab as sl

STEPS = 3


def best_seconds(function: Callable[[], Any], patience: float = 0.3) -> float:
    """CPU seconds of one call: the best of those that fit into the patience, at least three."""
    function()
    best, begun, calls = float("inf"), time.process_time(), 0
    while calls < 3 or time.process_time() - begun < patience:
        start = time.process_time()
        function()
        best, calls = min(best, time.process_time() - start), calls + 1
    return best


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope of log(seconds) over log(size) in the larger half of the sizes."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(seconds[half:]), 1)[0])


def sampling(length: int = 64, states: int = 3) -> Callable[[], Any]:
    world, rng = sl.worlds.InContextMarkov(states, 1, length), sl.rng(0)
    return lambda: world.sample(256, rng=rng)


def oracle(length: int = 64, states: int = 3) -> Callable[[], Any]:
    world = sl.worlds.InContextMarkov(states, 1, length)
    batch = world.sample(64, rng=sl.rng(0))
    return lambda: world.oracle(batch)


def training(length: int = 16, members: int = 4) -> Callable[[], Any]:
    """A few steps of a population; what it costs to begin is part of it and small."""
    world = sl.worlds.InContextMarkov(3, 1, length)
    population = sl.learning.Population(
        lambda seed: sl.models.Transformer(vocab=3, length=length, layers=1, heads=1, width=16), seeds=range(members)
    )
    return lambda: sl.learning.train(population, world, steps=STEPS, batch_size=8, rng=sl.rng(0), progress=False)


CASES: list[tuple[str, str, list[int], Callable[[int], Callable[[], Any]]]] = [
    ("256 sequences", "length", [16, 32, 64, 128, 256, 512], lambda size: sampling(length=size)),
    ("256 sequences", "states", [2, 4, 8, 16, 32], lambda size: sampling(states=size)),
    ("oracle, 64 sequences", "length", [16, 32, 64, 128, 256, 512], lambda size: oracle(length=size)),
    ("oracle, 64 sequences", "states", [2, 4, 8, 16, 32], lambda size: oracle(states=size)),
    ("training, 4 members", "length", [16, 32, 64, 128, 256], lambda size: training(length=size)),
    ("training", "members", [1, 2, 4, 8, 16, 32, 64], lambda size: training(members=size)),
]


def measure() -> list[dict[str, Any]]:
    """One row per quantity: the sizes, the seconds and the exponent of the growth. There is no baseline."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rows = []
    try:
        for name, axis, sizes, make in CASES:
            seconds = [best_seconds(make(size)) for size in sizes]
            rows.append(
                {
                    "name": f"{name} against {axis}",
                    "unit": "exponent of seconds",
                    "ours": exponent(sizes, seconds),
                    "baseline": None,
                    "ratio": None,
                    "axis": axis,
                    "sizes": sizes,
                    "seconds": seconds,
                }
            )
    finally:
        torch.set_num_threads(threads)
    return rows


def draw(rows: list[dict[str, Any]]) -> Any:
    """One panel per axis; each curve is named with its exponent."""
    from sandlab import figures

    axes_named = list(dict.fromkeys(row["axis"] for row in rows))
    figure, axes = figures.new(len(axes_named), width=4.4, height=3.6, title="How cost grows")
    with figures.style():
        for axis, name in zip(axes, axes_named):
            for row in (row for row in rows if row["axis"] == name):
                what = row["name"].split(" against")[0]
                axis.loglog(row["sizes"], row["seconds"], marker="o", markersize=3, label=f"{what}: {row['ours']:.2f}")
            sizes = sorted({size for row in rows if row["axis"] == name for size in row["sizes"]})
            axis.set_xticks(sizes, [str(size) for size in sizes])
            axis.minorticks_off()
            axis.set(xlabel=name, ylabel="seconds" if axis is axes[0] else "")
            axis.legend(title="exponent of the growth", fontsize=8, title_fontsize=8, loc="upper left")
            low, high = axis.get_ylim()
            axis.set_ylim(low, high * (high / low) ** 0.45)  # room for the legend
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description="How cost grows with length, states and members.")
    parser.add_argument("--json", help="write the measurements to this file")
    parser.add_argument("--figure", help="draw them into this file")
    given = parser.parse_args()
    rows = measure()
    for row in rows:
        print(f"{row['name']:40} grows like size^{row['ours']:.2f}")
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"rows": rows}, file, indent=1)
    if given.figure:
        draw(rows).savefig(given.figure)


if __name__ == "__main__":
    main()
