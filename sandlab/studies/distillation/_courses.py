"""Teaching transformers: one teacher with checkpoints, students of several methods and budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.errors import BadInput
from sandlab.learning.distillation.checkpoint_store import CheckpointStore, keep_weights, without_weights
from sandlab.learning.distillation.lesson_plans import EqualSplit, KappaSplit, LessonPlan, OneShot, TwoShot
from sandlab.learning.distillation.lessons import Lesson, distil
from sandlab.learning.distillation.phases import equally_spaced
from sandlab.learning.experiment import Experiment, Probe, Runs, Training
from sandlab.models.base import Config
from sandlab.studies.claims import NotMeasured
from sandlab.studies.study import Lab
from sandlab.worlds.base import World

WARM = 0.06
"""Share of a run over which the learning rate rises."""
METHODS = ("labels", "one-shot", "one-shot, τ = 1", "progressive", "progressive, τ = 1", "equal split")


def training(
    steps: int,
    *,
    batch_size: int,
    lr: float,
    evals: int = 20,
    eval_examples: int = 512,
    precision: str = "float32",
) -> Training:
    """Adam with β = (0.9, 0.95), cosine decay after a warm-up of 6 %."""
    return Training(
        steps, batch_size=batch_size, lr=lr, optimizer="adam", betas=(0.9, 0.95), schedule="cosine",
        warmup=int(WARM * steps), evals=evals, eval_examples=eval_examples, precision=precision,
    )  # fmt: skip


def recipe(
    world: World,
    model: Config,
    *,
    steps: int,
    batch_size: int,
    lr: float,
    seeds: int | tuple[int, ...],
    evals: int = 20,
    eval_examples: int = 512,
    probes: tuple[Probe, ...] = (),
    final: tuple[Probe, ...] = (),
    precision: str = "float32",
) -> Experiment:
    """A model on a world, trained as every one of the chapter."""
    how = training(steps, batch_size=batch_size, lr=lr, evals=evals, eval_examples=eval_examples, precision=precision)
    return Experiment(world, model, how, seeds, probes, final)


def for_steps(experiment: Experiment, steps: int) -> Experiment:
    """The same experiment with a horizon, and a schedule of the rate, of its own."""
    how = experiment.training
    evals = max(1, min(how.evals, steps))
    return replace(experiment, training=replace(how, steps=steps, warmup=int(WARM * steps), evals=evals))


@dataclass(frozen=True)
class Course:
    """A teacher and its students.

    teacher, student   experiments; a student's horizon is each of `budgets`
    shots              N: the checkpoints i·T₀/N teach in turn
    kappa              each for κT₀/N steps
    methods            of METHODS
    two_shot           (checkpoint, T) pairs of (2, T) schedules, with the horizon `two_shot_budget`
    teacher_budgets    horizons at which the teacher's size is trained on the labels too
    tau                temperature of the teachers (but for methods that name their own)
    """

    name: str
    teacher: Experiment
    student: Experiment
    budgets: tuple[int, ...]
    shots: int = 8
    kappa: float = 1.0
    methods: tuple[str, ...] = ("labels", "one-shot", "one-shot, τ = 1", "progressive")
    two_shot: tuple[tuple[int, int], ...] = ()
    two_shot_budget: int = 0
    teacher_budgets: tuple[int, ...] = ()
    tau: float = 1e-4

    def plan(self, method: str, final: int, budget: int) -> tuple[LessonPlan | None, float]:
        """Plan (None: the labels) and temperature of a method."""
        total = self.teacher.training.steps
        among = equally_spaced(total, self.shots)
        if method == "labels":
            return None, self.tau
        if method in ("one-shot", "one-shot, τ = 1"):
            return OneShot(final), 1.0 if method.endswith("1") else self.tau
        if method in ("progressive", "progressive, τ = 1"):
            return KappaSplit(among, self.kappa, total), 1.0 if method.endswith("1") else self.tau
        if method == "equal split":
            return EqualSplit(among, budget), self.tau
        raise BadInput(f"no method called {method!r}: one of {', '.join(METHODS)}")


@dataclass(frozen=True)
class Taught:
    """What a course left: the teacher's runs, and final accuracies and losses (budget, seed) of each method.

    final     method → what its students' final probes measured at the largest budget
    two_shot  (checkpoint, T, accuracies by seed)
    bigger    accuracies (budget, seed) of the teacher's size on the labels
    """

    name: str
    budgets: tuple[int, ...]
    teacher: Runs
    accuracy: dict[str, np.ndarray]
    loss: dict[str, np.ndarray]
    curves: dict[str, Runs]
    final: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    two_shot: list[tuple[int, int, np.ndarray]] = field(default_factory=list)
    bigger_budgets: tuple[int, ...] = ()
    bigger: np.ndarray | None = None

    def of(self, method: str, budget: int | None = None) -> np.ndarray:
        """Final accuracies by seed, at the last budget unless given."""
        if method not in self.accuracy:
            raise NotMeasured(f"the method {method!r}")
        return self.accuracy[method][-1 if budget is None else self.budgets.index(budget)]

    def one_shot(self, index: int = -1) -> np.ndarray:
        """The better temperature of the one-shot students, by the mean over seeds."""
        found = [self.accuracy[name][index] for name in ("one-shot", "one-shot, τ = 1") if name in self.accuracy]
        return max(found, key=lambda values: float(values.mean()))


def teach(course: Course, lab: Lab) -> Taught:
    """Train the teacher, then the students of every method and budget."""
    teacher = replace(course.teacher, probes=(*course.teacher.probes, keep_weights))
    runs = lab.train(teacher, label=f"{course.name}: teachers")
    store = CheckpointStore.of(runs, course.teacher.model)
    students = {budget: for_steps(course.student, budget) for budget in {*course.budgets, course.two_shot_budget} - {0}}
    # Final probes are long: only the largest budget's students are probed.
    bare = {budget: replace(each, final=()) for budget, each in students.items() if budget != course.budgets[-1]}
    students |= bare
    keys, lessons = _lessons(course, teacher, store, students)
    found = dict(zip(keys, distil(lab, lessons, [store] * len(lessons), label=f"{course.name}: students")))
    return _collected(course, without_weights(runs), found, _bigger(course, lab, runs))


def _lessons(
    course: Course, teacher: Experiment, store: CheckpointStore, students: Mapping[int, Experiment]
) -> tuple[list[Any], list[Lesson]]:
    keys: list[Any] = []
    lessons: list[Lesson] = []
    for method in course.methods:
        for budget in course.budgets:
            plan, tau = course.plan(method, store.final, budget)
            keys.append((method, budget))
            lessons.append(Lesson(teacher, students[budget], plan, tau))
    for step, each in course.two_shot:
        keys.append(("two-shot", step, each))
        lessons.append(
            Lesson(teacher, students[course.two_shot_budget], TwoShot((step,), each, store.final), course.tau)
        )
    return keys, lessons


def _bigger(course: Course, lab: Lab, runs: Runs) -> list[Runs]:
    """The teacher's size on the labels at each of its budgets; at the teacher's own, these are the teachers."""
    bare, own = replace(course.teacher, probes=(), final=()), course.teacher.training.steps
    others = [budget for budget in course.teacher_budgets if budget != own]
    trained = lab.train([for_steps(bare, budget) for budget in others], label=f"{course.name}: large") if others else []
    found = {own: runs, **dict(zip(others, trained))}
    return [found[budget] for budget in course.teacher_budgets]


def _collected(course: Course, teacher: Runs, found: dict[Any, Runs], bigger: list[Runs]) -> Taught:
    def table(metric: str) -> dict[str, np.ndarray]:
        return {
            method: np.stack([found[method, budget].metrics[metric][:, -1] for budget in course.budgets])
            for method in course.methods
        }

    last = course.budgets[-1]
    return Taught(
        course.name, course.budgets, teacher, table("accuracy"), table("loss"),
        {method: without_weights(found[method, last]) for method in course.methods},
        {method: dict(found[method, last].final) for method in course.methods},
        [(step, each, found["two-shot", step, each].metrics["accuracy"][:, -1]) for step, each in course.two_shot],
        course.teacher_budgets,
        np.stack([each.metrics["accuracy"][:, -1] for each in bigger]) if bigger else None,
    )  # fmt: skip


def gap(taught: Taught, index: int, method: str = "progressive") -> np.ndarray:
    """Accuracy of a method minus the better one-shot student's at one budget, by seed."""
    return taught.accuracy[method][index] - taught.one_shot(index)


def interior_peak(curves: np.ndarray) -> np.ndarray:
    """Largest value inside each curve (seed, evaluation) over the larger one of its ends."""
    ends = np.maximum(curves[:, 0], curves[:, -1])
    return np.maximum(np.nanmax(curves[:, 1:-1], 1), 1e-12) / np.maximum(ends, 1e-12)


def rows_of(courses: list[Taught]) -> list[dict[str, Any]]:
    """A table of mean accuracies by course, method and budget."""
    return [
        {"course": each.name, "method": method, **{f"{b} steps": float(v.mean()) for b, v in zip(each.budgets, values)}}
        for each in courses
        for method, values in each.accuracy.items()
    ] + [
        {
            "course": each.name,
            "method": "teacher's size, labels",
            **{f"{b} steps": float(v.mean()) for b, v in zip(each.bigger_budgets, each.bigger)},
        }
        for each in courses
        if each.bigger is not None
    ]


def draw_budgets(courses: list[Taught], title: str) -> Any:
    """Final accuracies by budget, a panel for each course."""
    figure, axes = figures.new(columns=len(courses), title=title)
    for axis, each in zip(axes, courses):
        for method, values in each.accuracy.items():
            axis.errorbar(each.budgets, values.mean(1), yerr=values.std(1), marker="o", capsize=2, label=method)
        axis.set(xlabel="training steps of the student", ylabel="final held-out accuracy", title=each.name)
        axis.legend(fontsize=7)
    return figure
