"""Whether a glitch is due to the order of the data or to the initial weights.

A grid of runs whose rows share the stream of strings and whose columns share the initial weights. The two seeds are
independent generators. Each panel shows the error on the dense tail (solid) and on the sparse one (dashed). The table
gives the two-way analysis of variance of the final error. That two runs differ at all is no finding; the claims ask for
a spread of a tenth of the error itself. Rows share their data and columns their weights, so the values of a claim are
not wholly independent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from matplotlib.figure import Figure
from torch import nn

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.models.base import Model, build, seeded
from sandlab.studies.claims import Mean
from sandlab.studies.flip_flop._shared import SOURCE, language_model, larger_tail
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.flip_flop.language import FlipFlop


@dataclass(frozen=True)
class InitialWeights:
    """Gives every member the weights of one seed; members then differ in their data alone."""

    seed: int

    def __call__(self, model: nn.Module) -> None:
        assert isinstance(model, Model)
        with seeded(self.seed):
            model.load_state_dict(build(model.config).state_dict())


SHORT, LONG = FlipFlop.ignoring(0.8, length=32), FlipFlop.ignoring(0.8, length=128)
QUICK = language_model(SHORT, steps=700, seeds=4)
study = Study(
    "flip-flop/seed-grid",
    title="Another order of the data or other initial weights give another tail error",
    source=SOURCE,
    at="Figure 7 (left)",
    quick=QUICK,
    full=language_model(LONG, steps=2000, reads=100_000, evals=30, seeds=5),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """One entry per seed of the weights, with one run per seed of the data."""

    columns: list[Runs]

    @cached_property
    def errors(self) -> np.ndarray:
        """Larger tail error (data, weights), at least 1e-6."""
        return np.maximum(np.stack([larger_tail(runs.final) for runs in self.columns], 1), 1e-6)

    @property
    def learnt(self) -> np.ndarray:
        """Which models err on less than 5 % in distribution (data, weights)."""
        return np.stack([runs.final["in"] < 0.05 for runs in self.columns], 1)


@study.collect
def collect(experiment: Experiment, lab: Lab) -> Results:
    """A square grid: the seeds of the experiment are those of the data and those of the weights."""
    columns = [replace(experiment, prepare=InitialWeights(seed)) for seed in experiment.seed_list]
    return Results(lab.train(columns, label="data seed × weight seed"))


@study.claim(Mean(above=0.1), at="Figure 7")
def data_order(results: Results) -> np.ndarray:
    """With the same initial weights, another order of the data gives another tail error.

    Standard deviation over data seeds of the larger tail error, over its mean, for each seed of the weights (0 when one
    of its models errs on more than 5 % in distribution).
    """
    return results.learnt.all(0) * results.errors.std(0, ddof=1) / results.errors.mean(0)


@study.claim(Mean(above=0.1), at="Figure 7")
def initial_weights(results: Results) -> np.ndarray:
    """With the same data, other initial weights give another tail error.

    Standard deviation over weight seeds of the larger tail error, over its mean, for each seed of the data (0 when one
    of its models errs on more than 5 % in distribution).
    """
    return results.learnt.all(1) * results.errors.std(1, ddof=1) / results.errors.mean(1)


@study.table
def variance(results: Results) -> Rows:
    """Sums of squares of a two-way layout with one observation per cell."""
    errors = results.errors
    data, weights = errors.mean(1) - errors.mean(), errors.mean(0) - errors.mean()
    rest = errors - errors.mean() - data[:, None] - weights[None, :]
    squares = (len(errors) * (data**2).sum(), len(errors) * (weights**2).sum(), (rest**2).sum())
    shares = np.array(squares) / (sum(squares) or 1.0)
    return [
        {"source": name, "sum of squares": float(square), "share": float(share)}
        for name, square, share in zip(("data order", "initial weights", "both"), squares, shares)
    ]


@study.figure
def grid(results: Results) -> Figure:
    size = len(results.columns)
    figure, axes = figures.new(columns=size, rows=size, width=2.2, height=1.7)
    for index, axis in enumerate(axes):
        data, weights = divmod(index, size)
        runs = results.columns[weights]
        axis.plot(runs.eval_steps, runs.metrics["dense"][data], label="dense tail")
        axis.plot(runs.eval_steps, runs.metrics["sparse"][data], linestyle="--", label="sparse tail")
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.set_ylim(0, 1)
        axis.set_title(f"data {data}, weights {weights}", fontsize=8.5)
        axis.tick_params(labelsize=7)
    axes[0].legend(fontsize=7)
    return figure
