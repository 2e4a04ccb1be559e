"""GPT-2s of several sizes on the ends of spans: which learn earlier, and when do n-grams matter most?

The teachers of distillation/next-token and models with fewer heads, all on the labels (Figure 4.31), and the teachers'
L_robust and L_close of 3-grams along the way (4.32), whose course changes at C1, the middle of the rapid phase. Both
are ½‖p − q‖₁.

Quick: sentences of the symbols 13, 14, 15 of cfg3f, ℓ = 3, two layers, 2, 4 and 8 heads, 400 steps of 32, four seeds.

Full: ℓ = 3 at the sizes of distillation/next-token's full preset, whose text says how they are reduced, with the
source's 8, 16 and 32 heads, evaluated every 60 steps.

**What was learnt** (quick, 2026-11-18). Larger models end higher (0.72, 0.76 and 0.80 with 2, 4 and 8 heads). Three of
four seeds with 8 heads are ahead from the start, one falls behind; L_close comes down where C1 is seen, and L_robust is
largest three evaluations after it or later. 400 steps on short sentences have no clean rapid phase.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.distillation.phases import loss_phases
from sandlab.learning.experiment import Experiment, Runs
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean, Ratio
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation.masked_grammar import reaches
from sandlab.studies.distillation.next_token import height_course
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study

FALLS = 0.05
"""Nats by which a held-out loss falls in a run that has a rapid phase."""


@dataclass(frozen=True)
class Settings:
    """The largest model, whose dependence on 3-grams is probed first of all lengths, and the other numbers of heads."""

    teacher: Experiment
    heads: tuple[int, ...]


LARGE = height_course("cfg3f", 3, 8).teacher
QUICK = Settings(height_course("cfg3f", 3, 2, quick=True).teacher, (2, 4))
study = Study(
    "distillation/next-token-sizes",
    title="GPT-2s of several sizes on the ends of spans: when they learn, and what they take from 3-grams",
    source=shared.SOURCE,
    at="Figures 4.31 and 4.32",
    quick=QUICK,
    full=Settings(replace(LARGE, training=replace(LARGE.training, evals=40)), (8, 16)),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    teacher: Runs
    largest: int
    others: dict[int, Runs]
    """Number of heads → runs, fewest first."""


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    model = settings.teacher.model
    assert isinstance(model, TransformerConfig) and model.head_width is not None and isinstance(model.heads, int)
    models = [replace(model, heads=heads, width=heads * model.head_width) for heads in settings.heads]
    found = lab.train([replace(settings.teacher, model=each, probes=()) for each in models], label="smaller models")
    teacher = lab.train(settings.teacher, label="teachers")
    return Results(teacher, model.heads, dict(zip(settings.heads, found)))


def middles(results: Results) -> np.ndarray:
    """The evaluation of each teacher at C1, sought from the first trained one on; −1 where the loss does not fall."""
    steps, losses = results.teacher.eval_steps[1:], results.teacher.metrics["loss"][:, 1:]
    found = [1 + int(np.flatnonzero(steps == loss_phases(steps, row).middle)[0]) for row in losses]
    return np.where(losses[:, 0] - losses[:, -1] > FALLS, found, -1)


@study.claim(Ratio(below=1.0), at="Figure 4.31", paper="larger earlier")
def larger_is_earlier(results: Results) -> np.ndarray:
    """The largest model is ahead of the smallest.

    First step at which it has 80 % of the smallest model's final accuracy over that of the smallest; 10 where the loss
    of the largest does not fall.
    """
    few = results.others[min(results.others)]
    level = 0.8 * few.metrics["accuracy"][:, -1]
    return np.where(middles(results) >= 0, first_above(results.teacher, level) / first_above(few, level), 10.0)


def first_above(runs: Runs, level: np.ndarray) -> np.ndarray:
    """First evaluated step at which each seed has its level; twice the horizon where it never has."""
    above = runs.metrics["accuracy"] >= level[:, None]
    found = np.where(above.any(1), runs.eval_steps[above.argmax(1)], 2 * runs.eval_steps[-1])
    return np.maximum(found, 1)


@study.claim(Mean(below=1.5), at="Figure 4.32", paper="both turn at C1")
def robust_turns_in_the_rapid_phase(results: Results) -> np.ndarray:
    """The teacher's dependence on 3-grams is largest in the middle of its rapid phase.

    Evaluations between C1 and the largest median L_robust(3) (asked: at most one); all of them where the loss does not
    fall.
    """
    robust = results.teacher.metrics["robust"][..., 0]
    apart = np.abs(np.nanargmax(robust, 1) - middles(results))
    return np.where(middles(results) >= 0, apart, robust.shape[1]).astype(float)


@study.claim(Ratio(below=1.0), at="Figure 4.32", paper="both turn at C1")
def close_falls_after_the_rapid_phase(results: Results) -> np.ndarray:
    """After C1 the teacher's distance from a 3-gram model shrinks.

    Median L_close(3) at the end over that at C1; 10 where the loss does not fall.
    """
    close, middle = results.teacher.metrics["close"][..., 0], middles(results)
    at_middle = close[np.arange(len(close)), middle]
    return np.where(middle >= 0, close[:, -1] / np.maximum(at_middle, 1e-9), 10.0)


@study.table
def table(results: Results) -> dict[str, Rows]:
    everyone = {**results.others, results.largest: results.teacher}
    rows = [
        {
            "heads": heads,
            "final accuracy": float(runs.metrics["accuracy"][:, -1].mean()),
            "80 % of it at step": float(np.median(reaches(runs.eval_steps, runs.metrics["accuracy"]))),
        }
        for heads, runs in everyone.items()
    ]
    return {"sizes": rows}


@study.figure
def learning(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, title="GPT-2s of several sizes on the ends of spans")
    for heads, runs in {**results.others, results.largest: results.teacher}.items():
        figures.band(axes[0], runs.eval_steps, runs.metrics["accuracy"], f"{heads} heads")
    axes[0].set(xlabel="training step", ylabel="held-out accuracy on span ends")
    steps, metrics = results.teacher.eval_steps, results.teacher.metrics
    for axis, measure in zip(axes[1:], ("robust", "close")):
        figures.band(axis, steps, metrics[measure][..., 0], "3-grams")
        axis.axvline(float(np.median(steps[middles(results)])), linestyle=":", color="0.4", label="C1")
        axis.set(xlabel="teacher's step", ylabel=f"median L_{measure}")
    for axis in axes:
        axis.legend(fontsize=7)
    return figure
