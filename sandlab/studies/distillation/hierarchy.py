"""A tree of parities needs two checkpoints, one for each stage of the teacher's transition.

Eight classes, decided by a binary tree whose nodes are k-sparse parities. The students are taught by the labels, by
the final teacher, by all checkpoints in turn, or by (3, T) schedules: two checkpoints for T steps each, then the
final one. Pairs inside the transition are compared with a pair of which one checkpoint lies before and the other
after it.

Quick: d = 40, k = 4, teacher of 1000 and students of 50 units, batch 16, rate 0.2, T = 4000, 24 000 steps: a setting
that was selected after three others, on two seeds; the seeds here are fresh (four seeds, 0 to 3, were inconclusive:
the preset has eight others). One-shot is τ = 10⁻⁴ alone, where a teacher without errors gives the labels: its students
are those of the labels, and that a teacher at τ = 1 teaches no better is not asked here.

Full: the source's k = 5 on d = 45 for 100 (0.45) with 2000 `width` for 50 000 (a twenty-fifth) and students of 100
units (those of 1000 are left out): the largest problem whose transition was known before the run, from steps 30 000 to
68 000 at batch 16 and rate 0.2. Checkpoints must be named beforehand, and lie in the transition where those of quick
do: pairs at 0.42 and 0.75, and at 0.17 and 0.67 of it, one pair around it. `updates` are 80 000 and 96 000 for 8
million (a hundredth; batch 16 for 1), T 16 000 for 2 million.

**What was learnt** (full, one H200, 2026-11-18). Eight seeds: the better pair inside the transition is 0.35 above the
labels, 0.53 above the pair around it and 0.28 above a single checkpoint; all checkpoints in turn are 0.32 above one-
shot. Seven of eight teachers show the features one after another.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.distillation.checkpoint_store import CheckpointStore
from sandlab.learning.distillation.lesson_plans import NT, LessonPlan, OneShot, TwoShot
from sandlab.learning.distillation.perceptrons import Drill
from sandlab.lenses.distillation.monomials import monomial_correlations
from sandlab.random import rng
from sandlab.studies.claims import Mean, Share
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation._shared import Curves
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.distillation.parities import HierarchicalParity


@dataclass(frozen=True)
class Settings:
    """Teachers, students, T, pairs inside the transition, the pair outside, single checkpoints, correlation samples."""

    teacher: Drill
    student: Drill
    widths: tuple[int, ...]
    first: int
    spacing: int
    inside: tuple[tuple[int, int], ...]
    outside: tuple[int, int]
    single: tuple[int, ...]
    watched: int = 2000
    examples: int = 20_000


WORLD = HierarchicalParity(40, 4, 3)
QUICK = Settings(
    Drill(WORLD, 1000, 20_000, 16, 0.2, every=1000, save=1000, seeds=tuple(range(4, 12))),
    Drill(WORLD, 50, 24_000, 16, 0.2, every=1000),
    (50,),
    4000,
    1000,
    inside=((9000, 13_000), (6000, 12_000)),
    outside=(3000, 19_000),
    single=(12_000,),
)
PUBLISHED = HierarchicalParity(45, 5, 3)
FULL = Settings(
    Drill(PUBLISHED, 2000, 80_000, 16, 0.2, every=1600, save=1600, seeds=tuple(range(4, 12))),
    Drill(PUBLISHED, 100, 96_000, 16, 0.2, every=1600),
    (100,),
    16_000,
    1600,
    inside=((46_400, 57_600), (36_800, 54_400)),
    outside=(22_400, 78_400),
    single=(54_400,),
    watched=3200,
    examples=100_000,
)
study = Study(
    "distillation/hierarchy",
    title="Two checkpoints inside the transition teach a tree of parities; a pair around it does not",
    source=shared.SOURCE,
    at="Figures 4.18 and 4.20 to 4.22",
    quick=QUICK,
    full=FULL,
    null=replace(QUICK, teacher=replace(QUICK.teacher, lr=0.0), student=replace(QUICK.student, lr=0.0, updates=1000)),
)


@dataclass(frozen=True)
class Watched:
    """The teacher whose correlations are measured."""

    teacher: Drill
    index: int
    checkpoints: tuple[int, ...]
    examples: int
    device: str = "cpu"


@dataclass(frozen=True)
class Results:
    teacher: Curves
    students: dict[int, dict[str, Curves]]
    pairs: list[str]
    outside: str
    single: list[str]
    eval_steps: np.ndarray
    groups: np.ndarray
    """Mean |degree-2 correlation| of the first class (seed, step, group): the three nodes of its path, and the rest."""


def correlate(what: Watched, store: CheckpointStore) -> np.ndarray:
    """The job: mean |degree-2 correlation| with pairs of each node on the first leaf's path, and with the rest."""
    world = what.teacher.world
    assert isinstance(world, HierarchicalParity)
    groups = [world.group(node) for node in world.path(0)] + [tuple(range(world.relevant, world.dimension))]
    sets = [list(itertools.combinations(group, 2))[:60] for group in groups]
    found = []
    for step in what.checkpoints:
        model = store.model(what.index, step).to(what.device)
        flat = [chosen for group in sets for chosen in group]
        generator = rng(0, "signs", device=what.device)
        values = monomial_correlations(
            lambda x, model=model: model(x)[:, 0].softmax(-1)[:, 0], world.dimension, flat, rng=generator,
            examples=what.examples,
        )  # fmt: skip
        places = np.cumsum([len(group) for group in sets])[:-1]
        found.append([float(part.mean()) for part in np.split(values, places)])
    return np.array(found)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    teacher, runs = shared.train_teachers(lab, settings.teacher)
    store, count = runs.store(teacher), len(teacher.seeds)
    final = shared.final_of(store, settings.spacing)
    names = [name_of(pair) for pair in settings.inside]
    methods: dict[str, list[LessonPlan | None]] = {
        "labels": [None] * count,
        "one-shot": [OneShot(final)] * count,
        "progressive": [NT(final // settings.spacing, settings.spacing, final)] * count,
    }
    singles = [name_of((step,)) for step in settings.single]
    chosen = [*settings.inside, settings.outside, *((step,) for step in settings.single)]
    for pair in chosen:
        kept = tuple(store.nearest(step) for step in pair)
        methods[name_of(pair)] = [TwoShot(kept, settings.first, final)] * count
    students = {
        width: shared.teach_perceptrons(lab, replace(settings.student, width=width), teacher, store, methods)
        for width in settings.widths
    }
    steps = tuple(step for step in store.saved_steps if step % settings.watched == 0)
    watched = [Watched(teacher, index, steps, settings.examples, lab.device) for index in range(count)]
    groups = lab.map(correlate, watched, given=[store] * count, label="correlations")
    curves = Curves(runs.eval_steps, runs.accuracy)
    outside = name_of(settings.outside)
    return Results(curves, students, names, outside, singles, np.array(steps), np.stack(groups))


def name_of(steps: tuple[int, ...]) -> str:
    """ "9k, 13k" for (9000, 13000)."""
    return ", ".join(f"{step / 1000:g}k" for step in steps)


def _students(results: Results) -> dict[str, Curves]:
    return next(iter(results.students.values()))


def best_pair(results: Results) -> np.ndarray:
    """Last accuracies of the students of the pair that is best on average."""
    found = [_students(results)[name].last for name in results.pairs]
    return max(found, key=lambda values: float(values.mean()))


@study.claim(Mean(above=0.15), at="Figure 4.21", paper="good pairs reach 100 %")
def pair_above_labels(results: Results) -> np.ndarray:
    """The best pair of checkpoints inside the transition beats the labels.

    Last accuracy of its students minus that of the students of the labels.
    """
    return best_pair(results) - _students(results)["labels"].last


@study.claim(Mean(above=0.3), at="Figure 4.21", paper="pairs with a checkpoint outside are sub-optimal")
def pair_above_outside(results: Results) -> np.ndarray:
    """It beats a pair around the transition.

    Last accuracy of its students minus that of the students of the pair outside.
    """
    return best_pair(results) - _students(results)[results.outside].last


@study.claim(Mean(above=0.0), at="Figure 4.18", paper="one-shot is slower")
def progressive_above_one_shot(results: Results) -> np.ndarray:
    """All checkpoints in turn are better than the final one alone.

    Last accuracy of the progressive students minus the one-shot students'.
    """
    return _students(results)["progressive"].last - _students(results)["one-shot"].last


@study.claim(Mean(above=0.0), at="Figure 4.21", paper="a single checkpoint never reaches 100 %")
def pair_above_single(results: Results) -> np.ndarray:
    """Two checkpoints are better than one of them.

    Last accuracy of the best pair's students minus that of the best single checkpoint's.
    """
    return best_pair(results) - np.max([_students(results)[name].last for name in results.single], 0)


@study.claim(Share(above=0.5), at="Figure 4.20", paper="spikes at different steps")
def features_in_turn(results: Results) -> list[bool]:
    """The teacher shows the features of its levels at different times.

    Share of seeds whose correlations with pairs of the three nodes on the first leaf's path do not all peak at once,
    each peak being at least three times the rest's mean.
    """
    found = []
    for seed in results.groups:
        peaks, rest = seed[:, :3].argmax(0), seed[:, 3].mean()
        found.append(bool(len(set(peaks.tolist())) > 1 and (seed[:, :3].max(0) > 3 * rest).all()))
    return found


@study.table
def table(results: Results) -> dict[str, Rows]:
    rows = [
        {"width": width, "method": name, **{f"seed {i}": float(value) for i, value in enumerate(each.last)}}
        for width, students in results.students.items()
        for name, each in students.items()
    ]
    return {"last accuracies": rows}


@study.figure
def curves(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, width=5.4, title="A tree of parities is taught by two checkpoints in turn")
    figures.band(axes[0], results.teacher.eval_steps, results.teacher.accuracy, "teacher")
    for name, each in _students(results).items():
        axes[0].plot(each.eval_steps, each.accuracy.mean(0), label=name)
    axes[0].set(xlabel="training step", ylabel="held-out accuracy", title="students: mean over seeds")
    for index, name in enumerate(("root's node", "second node", "lowest node", "irrelevant")):
        axes[1].plot(results.eval_steps, results.groups[:, :, index].mean(0), label=name)
    axes[1].set(xlabel="teacher's step", ylabel="mean |correlation|", title="with pairs of coordinates of a node")
    for axis in axes:
        axis.legend(fontsize=7)
    return figure
