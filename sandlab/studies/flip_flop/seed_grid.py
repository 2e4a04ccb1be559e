"""Whose fault is a glitch: of the data's order, or of the initial weights?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.claims import Above, Claim
from sandlab.studies.flip_flop.runs import SOURCE, Run, train_run
from sandlab.studies.study import Lab, Outcome, study

RUN = Run(steps=900)


@dataclass(frozen=True)
class Settings:
    """A square grid: data seeds × model seeds."""

    seeds: int = 2
    run: Run = RUN


@study(
    "flip-flop/seed-grid",
    title="Glitches depend on the order of the data and on the initial weights alike",
    source=f"{SOURCE}, Figure 7 (left)",
    quick=Settings(),
    full=Settings(seeds=5, run=Run(length=128, steps=2000, targets=100_000, checks=30)),
    claims=[
        Claim(
            "data-order",
            "With the same initial weights, another order of the data gives another tail error.",
            f"{SOURCE}, Figure 7",
            "standard deviation over data seeds of the larger tail error, mean over models",
            Above(0.0),
            exact=True,
        ),
        Claim(
            "initial-weights",
            "With the same data, other initial weights give another tail error.",
            f"{SOURCE}, Figure 7",
            "standard deviation over model seeds of the larger tail error, mean over data seeds",
            Above(0.0),
            exact=True,
        ),
    ],
)
def seed_grid(config: Settings, lab: Lab) -> Outcome:
    """A grid of runs whose rows share the stream of strings and whose columns share the initial weights.

    The two seeds are independent generators. Each panel shows the error on the dense tail (solid) and on the sparse
    one (dashed). The table gives the two-way analysis of variance of the final error.
    """
    models = tuple(range(config.seeds))
    together = lab.device != "cpu"
    jobs = [
        replace(config.run, seeds=models if together else (model,), data_seed=data, device=lab.device)
        for data in range(config.seeds)
        for model in ((0,) if together else models)
    ]
    found = lab.map(train_run, jobs, label="data seed × model seed")
    size = config.seeds
    final = {
        name: np.concatenate([r["final"][name] for r in found]).reshape(size, size) for name in ("sparse", "dense")
    }
    worse = np.maximum(final["sparse"], final["dense"])
    curves = {name: np.concatenate([r["curves"][name] for r in found]) for name in ("sparse", "dense")}
    measurements = {
        "data-order": float(worse.std(0, ddof=1).mean()),
        "initial-weights": float(worse.std(1, ddof=1).mean()),
    }
    return Outcome(measurements, {"grid": _draw(found[0]["steps"], curves, size)}, {"variance": _variance(worse)})


def _variance(values: np.ndarray) -> list[dict[str, Any]]:
    """Sums of squares of a two-way layout with one observation per cell."""
    mean = values.mean()
    rows, columns = values.mean(1) - mean, values.mean(0) - mean
    rest = values - mean - rows[:, None] - columns[None, :]
    size = len(values)
    parts = {
        "data order": size * (rows**2).sum(),
        "initial weights": size * (columns**2).sum(),
        "both": (rest**2).sum(),
    }
    total = sum(parts.values())
    return [
        {"source": name, "sum of squares": float(value), "share": float(value / total) if total else 0.0}
        for name, value in parts.items()
    ]


def _draw(steps: np.ndarray, curves: dict[str, np.ndarray], size: int) -> Any:
    figure, axes = figures.new(columns=size, rows=size, width=2.2, height=1.7)
    for place, axis in enumerate(axes):
        axis.plot(steps, curves["dense"][place], label="dense tail")
        axis.plot(steps, curves["sparse"][place], linestyle="--", label="sparse tail")
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.set_ylim(0, 1)
        data, model = divmod(place, size)
        axis.set_title(f"data {data}, weights {model}", fontsize=8.5)
        axis.tick_params(labelsize=7)
    axes[0].legend(fontsize=7)
    return figure
