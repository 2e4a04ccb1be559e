"""Depth, width and heads: training curves of small and large transformers on the same memory task.

The same language, FFL(0.8), and the same schedule for transformers of growing depth, width and number of heads. Each
panel is one size: thin lines are the seeds' errors on the worse tail, the thick line the median of the best so far, the
dotted one the error in distribution. Two layers suffice in principle (`flip-flop/theorems`); one does not. Quick has
strings of 32 tokens, full of 128. The published sweep runs from 2 layers of width 128 to 8 layers of width 1024 at 512
tokens; `--set sizes=…` takes any size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.lenses.flip_flop.pictures import draw_training_errors
from sandlab.studies.claims import Mean, NotMeasured, Share
from sandlab.studies.flip_flop._shared import SETS, SOURCE, language_model, larger_tail
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.flip_flop.language import FlipFlop

Size = tuple[int, int, int]


@dataclass(frozen=True)
class Settings:
    """Sizes as (layers, width, heads), from small to large, and the experiment that they change."""

    experiment: Experiment
    sizes: tuple[Size, ...]


FULL_SIZES = ((1, 64, 4), (2, 64, 2), (2, 64, 4), (2, 128, 4), (4, 128, 4), (4, 256, 8), (6, 256, 8))
SHORT, LONG = FlipFlop.ignoring(0.8, length=32), FlipFlop.ignoring(0.8, length=128)
QUICK = Settings(language_model(SHORT, steps=800, evals=10, seeds=6), ((1, 32, 2), (2, 32, 2), (2, 64, 4)))
study = Study(
    "flip-flop/sizes",
    title="The smallest models do not learn the task, and no size answers every read of the tails",
    source=SOURCE,
    at="Figure 6",
    quick=QUICK,
    full=Settings(language_model(LONG, steps=2500, evals=30, reads=50_000, seeds=8), FULL_SIZES),
    null=replace(QUICK, experiment=untrained(QUICK.experiment)),
)


@dataclass(frozen=True)
class Results:
    """Size → runs, from small to large."""

    runs: dict[Size, Runs]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    experiment = settings.experiment
    models = [replace(experiment.model, **named(size)) for size in settings.sizes]
    runs = lab.train([replace(experiment, model=model) for model in models], label="sizes")
    return Results(dict(zip(settings.sizes, runs)))


def named(size: Size) -> dict[str, int]:
    return dict(zip(("layers", "width", "heads"), size))


@study.claim(Mean(above=0.01), at="Figure 6", paper="shallow models fail to converge")
def shallow(results: Results) -> np.ndarray:
    """The shallowest model does not converge even in distribution.

    Read error in distribution of the smallest size, for seeds with a size that errs on less than 1 % (0 for others).
    """
    return where_learnt(results, next(iter(results.runs.values())).final["in"])


def where_learnt(results: Results, errors: np.ndarray) -> np.ndarray:
    """The errors of the seeds for which some size learns the task, 0 for the others."""
    return np.where(learnt(results) < 0.01, errors, 0.0)


@study.claim(Mean(above=0.01), at="Figure 6", paper="shallow models fail to converge", presets=("full",))
def two_layers(results: Results) -> np.ndarray:
    """The smallest model of two layers, the source's smallest depth, does not converge in distribution either.

    Read error in distribution of the first size with two layers, for seeds with a size that errs on less than 1 %.
    """
    two = [runs for (layers, _, _), runs in results.runs.items() if layers == 2]
    if not two:
        raise NotMeasured("no size has two layers")
    return where_learnt(results, two[0].final["in"])


@study.claim(Mean(below=0.005), at="Figure 6")
def learnt(results: Results) -> np.ndarray:
    """Some size answers its training distribution.

    Each seed's smallest read error in distribution, over sizes.
    """
    return np.min([runs.final["in"] for runs in results.runs.values()], axis=0)


@study.claim(Share(above=0.5), at="Figure 6", paper="all transformers err (share 1)")
def no_size_perfect(results: Results) -> np.ndarray:
    """No size is free of errors in the tails.

    Share of seeds for which some size has less than 1 % error in distribution, and every size errs on a tail.
    """
    errs = np.all([larger_tail(runs.final) > 0 for runs in results.runs.values()], axis=0)
    return errs & (learnt(results) < 0.01)


@study.table
def sizes(results: Results) -> Rows:
    return [
        {**named(size), "parameters": runs.parameters, **{name: float(runs.final[name].mean()) for name in SETS}}
        for size, runs in results.runs.items()
    ]


@study.figure
def curves(results: Results) -> Figure:
    columns = min(4, len(results.runs))
    figure, axes = figures.new(columns=columns, rows=-(-len(results.runs) // columns), width=2.7, height=2.3)
    for axis, (size, runs) in zip(axes, results.runs.items()):
        steps, tails = runs.eval_steps, larger_tail(runs.metrics)
        draw_training_errors(axis, steps, tails, colour=figures.COLOURS[0], label="tail, best")
        axis.plot(steps, np.median(runs.metrics["in"], 0), color="#555555", linestyle=":", label="in distribution")
        axis.set_title("depth {}, width {}, heads {}".format(*size), fontsize=8.5)
        axis.tick_params(labelsize=7)
    for axis in axes[len(results.runs) :]:
        axis.set_visible(False)
    axes[0].legend(fontsize=7)
    axes[0].set_ylabel("read error")
    return figure
