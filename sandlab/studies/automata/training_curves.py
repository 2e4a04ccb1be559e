"""Training on automata progresses in jumps, at different times for different seeds.

Token accuracy along training, one line per seed, with a learning rate that stays constant after the warm-up.
Everything but the initial weights and the data is the same for all lines. The curves stay on plateaus, jump at
different times, and sometimes fall back: whether a given number of steps suffices is a matter of luck, which is why
the tables of this chapter give the best and the median of several runs.

Published: C₂ and S₅ at length 100, ten runs each. Quick: C₂, 20 letters, 2 layers of width 64, 700 batches of 48
words at rate 2e-3, 6 seeds. Full: C₂ and S₅, 20 letters, 4 layers of width 128, 6000 batches at 5e-4, 10 seeds.

What to look for: the vertical distance between lines in the middle of the figure, the steep parts, and the dents.
The second panel (full) is S₅, which this depth does not solve: it creeps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.studies.automata._shared import SOURCE, recipe, transformer
from sandlab.studies.claims import Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.catalogue import named_machine


@dataclass(frozen=True)
class Settings:
    """Parity (C₂), and S₅ in the full study."""

    parity: Experiment
    symmetric: Experiment | None = None


SMALL = recipe(700, batch_size=48, lr=2e-3, schedule="constant", evals=35, eval_examples=256)
LARGE = recipe(6000, lr=5e-4, schedule="constant", evals=120, eval_examples=256)
QUICK = Settings(transformer(named_machine("C2", length=20), SMALL, seeds=6))
study = Study(
    "automata/training-curves",
    title="Plateaus, jumps and falls: no two runs on parity look alike",
    source=SOURCE,
    at="Figure 5b and 5c",
    quick=QUICK,
    full=Settings(
        parity=transformer(named_machine("C2", length=20), LARGE, seeds=10, layers=4, width=128),
        symmetric=transformer(named_machine("S5", length=20), LARGE, seeds=10, layers=4, width=128),
    ),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """The runs of each automaton, by name."""

    runs: dict[str, Runs]

    @property
    def parity(self) -> np.ndarray:
        """Accuracy on C₂ (seed, evaluation)."""
        return self.runs["C2"].metrics["accuracy"]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    chosen = {"C2": settings.parity, "S5": settings.symmetric}
    experiments = {name: each for name, each in chosen.items() if each is not None}
    return Results(dict(zip(experiments, lab.train(list(experiments.values()), label="training curves"))))


@study.claim(Mean(above=0.05), at="Figure 5b", paper="curves from chance to 100 %")
def spread(results: Results) -> np.ndarray:
    """Runs that differ only in their seed are far apart in the middle of training.

    Distance of a seed's accuracy on C₂ from the mean of the others, when the mean of all is half-way to its highest.
    """
    mean = results.parity.mean(0)
    half_way = int(np.argmax(mean >= (mean[0] + mean.max()) / 2))
    now, others = results.parity[:, half_way], max(1, len(results.parity) - 1)
    return np.abs(now - now.mean()) * len(now) / others


@study.claim(Mean(above=0.2), at="Figure 5b")
def jumps(results: Results) -> np.ndarray:
    """Accuracy increases abruptly: a tenth of training brings much of the whole increase.

    Largest increase on C₂ within a tenth of training over the increase of the whole run, at least 0.25 (a steady
    increase: 0.1).
    """
    return jump_shares(results.parity)


@study.claim(Mean(above=0.05), at="Figure 5b")
def falls(results: Results) -> np.ndarray:
    """Accuracy also drops on the way, by more than the evaluations' sampling error.

    Largest distance of the accuracy on C₂ below its highest earlier value, mean over seeds.
    """
    return (np.maximum.accumulate(results.parity, axis=1) - results.parity).max(1)


def jump_shares(curves: np.ndarray) -> np.ndarray:
    """Largest increase within a tenth of the run as a share of the increase from the first to the highest value.

    A run that hardly increases has no jump: its increase counts as 0.25, half of the way from chance to certainty.
    """
    window = max(1, (curves.shape[1] - 1) // 10)
    increases = (curves[:, window:] - curves[:, :-window]).max(1)
    return increases / np.maximum(curves.max(1) - curves[:, 0], 0.25)


@study.table
def runs(results: Results) -> Rows:
    return [
        {"automaton": name, "seed": seed, "last": float(curve[-1]), "highest": float(curve.max())}
        for name, each in results.runs.items()
        for seed, curve in enumerate(each.metrics["accuracy"])
    ]


@study.figure
def curves(results: Results) -> Figure:
    figure, axes = figures.new(columns=len(results.runs), width=4.6, height=3.2)
    for axis, (name, each) in zip(axes, results.runs.items()):
        for seed, curve in enumerate(each.metrics["accuracy"]):
            line = "-" if seed < 8 else "--"
            axis.plot(each.eval_steps, curve, color=figures.COLOURS[seed % 8], linestyle=line, linewidth=1.2)
        axis.set(title=name, xlabel="training step", ylabel="token accuracy", ylim=(None, 1.01))
    return figure
