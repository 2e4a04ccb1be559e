"""Learning automata comes in jumps, and not at the same time for every seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.automata.runs import SOURCE, Run, Task, by_task
from sandlab.studies.claims import Above, Claim
from sandlab.studies.study import Lab, Outcome, study

SMALL = Run(length=20, batch_size=48, lr=2e-3, steps=700, schedule="constant", looks=35, looked_at=256)
LARGE = Run(
    tasks=(Task("C2"), Task("S5")),
    length=20,
    layers=4,
    width=128,
    steps=6000,
    lr=5e-4,
    schedule="constant",
    looks=120,
    looked_at=256,
)


@dataclass(frozen=True)
class Settings:
    """Seeds, and the run with its tasks."""

    seeds: int = 6
    run: Run = SMALL


@study(
    "automata/training-curves",
    title="Plateaus, jumps and falls: no two runs on parity look alike",
    source=f"{SOURCE}, Figure 5b and 5c",
    quick=Settings(),
    full=Settings(seeds=10, run=LARGE),
    claims=[
        Claim(
            "spread",
            "Runs that differ only in their seed are far apart in the middle of training.",
            f"{SOURCE}, Figure 5b",
            "largest standard deviation over seeds of the accuracy on C₂ at one step",
            Above(0.05),
            exact=True,
            paper="curves from chance to 100 %",
        ),
        Claim(
            "jumps",
            "Accuracy rises abruptly: a tenth of training brings much of the whole rise.",
            f"{SOURCE}, Figure 5b",
            "largest rise on C₂ within a tenth of training over the rise of the whole run (a steady rise: 0.1)",
            Above(0.2),
        ),
        Claim(
            "falls",
            "Accuracy also falls on the way.",
            f"{SOURCE}, Figure 5b",
            "mean number of evaluations on C₂ that are at least 0.01 below the one before",
            Above(0.0),
        ),
    ],
)
def training_curves(config: Settings, lab: Lab) -> Outcome:
    """Token accuracy along training, one line per seed, with a learning rate that stays where it is after the warm-up.

    Everything but the initial weights and the order of the data is the same for all lines. The curves stay on
    plateaus, jump at different times, and sometimes fall back: whether a given number of steps suffices is a matter of
    luck, which is why the tables of this chapter give the best and the median of several runs.

    Published: C₂ and S₅ at length 100, ten runs each. Quick: C₂, 20 letters, 2 layers of width 64, 700 batches of 48
    words at rate 2e-3, 6 seeds. Full: C₂ and S₅, 20 letters, 4 layers of width 128, 6000 batches at 5e-4, 10 seeds.

    What to look for: the vertical distance between lines in the middle of the figure, the steep parts, and the dents.
    The second panel (full) is S₅, which this depth does not solve: it creeps.
    """
    (found,) = by_task(lab, [config.run], config.seeds, "training curves")
    curves = found["accuracy curve"]
    parity = curves[Task("C2")]
    measurements = {
        "spread": float(parity.std(0, ddof=1).max()) if len(parity) > 1 else 0.0,
        "jumps": jump_shares(parity),
        "falls": (np.diff(parity, axis=1) <= -0.01).sum(1).astype(float),
    }
    steps = found["steps"][config.run.tasks[0]]
    rows = [
        {"automaton": task.machine, "seed": seed, "last": float(curve[-1]), "highest": float(curve.max())}
        for task, values in curves.items()
        for seed, curve in enumerate(values)
    ]
    return Outcome(measurements, {"curves": _draw(steps, curves)}, {"runs": rows})


def jump_shares(curves: np.ndarray) -> np.ndarray:
    """Largest rise within a tenth of the run as a share of the rise from the first to the highest value."""
    window = max(1, (curves.shape[1] - 1) // 10)
    rises = (curves[:, window:] - curves[:, :-window]).max(1)
    return rises / np.maximum(curves.max(1) - curves[:, 0], 1e-9)


def _draw(steps: np.ndarray, curves: dict[Task, np.ndarray]) -> Any:
    figure, axes = figures.new(columns=len(curves), width=4.6, height=3.2)
    for axis, (task, values) in zip(axes, curves.items()):
        for seed, curve in enumerate(values):
            axis.plot(steps, curve, color=figures.COLOURS[seed % 8], linestyle="-" if seed < 8 else "--", linewidth=1.2)
        axis.set(title=task.machine, xlabel="training step", ylabel="token accuracy", ylim=(None, 1.01))
    return figure
