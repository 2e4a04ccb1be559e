"""One checkpoint is enough when it lies in the middle of the teacher's transition: it points at the support.

(2, T) distillation: one intermediate checkpoint teaches for T steps, then the final one. Candidates are a checkpoint
before the teacher's transition, the one nearest to its middle, the one whose probability correlates most with the
coordinates of the support, and the final one itself. The setting of distillation/parity-mlp, T = 5000 in quick (the
source's 1 million), 25 000 steps in all.

Correlations |E[p(class 0) ∏_{i∈A} x_i]| of the teachers with monomials of degree 1, 2 and 3 inside the support and off
it are measured along the way: before the transition there is noise, inside it the support sticks out, afterwards only
the full parity is left. In a second teacher (rate 10⁻²) the source found no clean gap at degree 1 but at degrees 2 and
3; the claims about these degrees speak of all teachers.

Full: the teachers of distillation/parity-mlp's full preset, whose docstring says how they are reduced (d = 60, k = 6,
1000 units for 50 000); one rate for two; `widths` of the students 100 and 300 for 100 and 1000 (a third, as the teacher
is small); T is 5120 for 1 million and the students' `updates` 25 600 for 2 million (0.005 and 0.013);
correlations at 12 `points` with the source's 100 000 `examples`.

**What was learnt** (quick, 2026-11-18). The middle teaches: all eight students reach 0.95 in 8000 to 18 000 steps,
while none of those of a checkpoint before or after passes 0.53. At the peak the support sticks out by 2.5 to 9.6 times.
The same settings and seeds, run on 2026-11-16 with another version of torch on another processor (the ledger has both),
left one of eight teachers without a transition in the 60 000 steps it may take, and the first claim inconclusive:
rounding decides when a teacher begins, and one run of eight seeds is not more than that. The run was repeated because
the full preset had changed, and only once.

Chosen after a look at results: a first run had seeds 0 to 3 and correlations at 12 checkpoints. They were seen, and
replaced by seeds 4 to 11 and 8 checkpoints before the recorded run; the claims and their thresholds stayed.

**In full** (d = 60, one H200, 2026-11-18) the middle teaches all sixteen students, of both widths, in 3000 to 8500
steps, and so does the checkpoint of the largest correlation; before and after teach none of 100 units. At the peak the
support sticks out 4.6 times (the interval begins at 3.1), degrees 2 and 3 do 8.7 times. A first run at d = 100 had
teachers that did not learn (see distillation/parity-mlp); the ledger keeps its verdicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.distillation.checkpoint_store import CheckpointStore
from sandlab.learning.distillation.lesson_plans import LessonPlan, TwoShot
from sandlab.learning.distillation.perceptrons import Drill
from sandlab.learning.distillation.phases import Phases, accuracy_phases, mid_transition, peak
from sandlab.lenses.distillation.monomials import support_report
from sandlab.studies.claims import Mean, Ratio
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation import parity_mlp
from sandlab.studies.distillation._shared import Curves
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.distillation.parities import SparseParity

DEGREES = (1, 2, 3)


@dataclass(frozen=True)
class Settings:
    """Teachers (one drill, or several with other rates), students' widths, T, and the correlation samples."""

    teachers: tuple[Drill, ...]
    student: Drill
    widths: tuple[int, ...]
    first: int
    before: int
    points: int = 8
    examples: int = 40_000


QUICK = Settings((parity_mlp.TEACHER,), replace(parity_mlp.QUICK.student, updates=25_000), (50,), 5000, 3000)
PUBLISHED = parity_mlp.FULL.teacher
study = Study(
    "distillation/one-checkpoint",
    title="One checkpoint from the middle of the transition teaches sparse parity; one before or after does not",
    source=shared.SOURCE,
    at="Figures 4.5, 4.11 and 4.12",
    quick=QUICK,
    full=Settings(
        (PUBLISHED,),
        replace(parity_mlp.FULL.student, updates=25_600),
        (100, 300),
        5120,
        2560,
        points=12,
        examples=100_000,
    ),
    null=replace(
        QUICK,
        teachers=(replace(parity_mlp.TEACHER, lr=0.0, updates=3000),),
        student=replace(QUICK.student, lr=0.0, updates=500),
    ),
)


@dataclass(frozen=True)
class Watched:
    """What to measure of one teacher: where its checkpoints come from, and at which steps."""

    teacher: Drill
    index: int
    checkpoints: tuple[int, ...]
    examples: int
    device: str = "cpu"


@dataclass(frozen=True)
class Correlations:
    """Mean |correlation| inside the support and off it (step, degree), and of every coordinate (step, coordinate)."""

    eval_steps: np.ndarray
    inside: np.ndarray
    rest: np.ndarray
    coordinates: np.ndarray


@dataclass(frozen=True)
class Teacher:
    """One rate's teachers: curves, transitions, candidates and correlations by seed."""

    curves: Curves
    phases: list[Phases]
    candidates: dict[str, list[int]]
    correlations: list[Correlations]
    students: dict[int, dict[str, Curves]]


@dataclass(frozen=True)
class Results:
    teachers: list[Teacher]


def correlate(what: Watched, store: CheckpointStore) -> Correlations:
    """The job: correlations of one teacher at some of its checkpoints."""
    world = what.teacher.world
    assert isinstance(world, SparseParity)
    inside, rest, every = [], [], []
    for step in what.checkpoints:
        model = store.model(what.index, step).to(what.device)
        reports = [
            support_report(
                _probability(model), world.coordinates, world.dimension, degree=degree, examples=what.examples,
                device=what.device,
            )
            for degree in DEGREES
        ]  # fmt: skip
        inside.append([float(report.inside.mean()) for report in reports])
        rest.append([float(report.rest.mean()) for report in reports])
        every.append(np.concatenate([reports[0].inside, reports[0].rest]))
    return Correlations(np.array(what.checkpoints), np.array(inside), np.array(rest), np.array(every))


def _probability(model: torch.nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: model(x)[:, 0].softmax(-1)[:, 0]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    return Results([_one_rate(settings, teacher, lab) for teacher in settings.teachers])


def _one_rate(settings: Settings, drill: Drill, lab: Lab) -> Teacher:
    teacher, runs = shared.train_teachers(lab, drill)
    store = runs.store(teacher)
    curves = Curves(runs.eval_steps, runs.accuracy)
    phases = [accuracy_phases(runs.eval_steps, row) for row in runs.accuracy]
    points = [_points(store, each, settings) for each in phases]
    watched = [Watched(teacher, i, steps, settings.examples, lab.device) for i, steps in enumerate(points)]
    found = lab.map(correlate, watched, given=[store] * len(watched), label="correlations")
    candidates = {
        "before": [_nearest(store, (p.start if p.start > 0 else store.final) - settings.before) for p in phases],
        "middle": [mid_transition(store.saved_steps, p) if p.middle > 0 else store.final for p in phases],
        "largest correlation": [peak(each.eval_steps.tolist(), each.inside[:, 0]) for each in found],
        "final": [store.final for _ in phases],
    }
    plans: dict[str, list[LessonPlan | None]] = {
        name: [TwoShot((step,), settings.first, store.final) for step in chosen] for name, chosen in candidates.items()
    }
    students = {
        width: shared.teach_perceptrons(lab, replace(settings.student, width=width), teacher, store, plans)
        for width in settings.widths
    }
    return Teacher(curves, phases, candidates, found, students)


def _nearest(store: CheckpointStore, step: int) -> int:
    return store.nearest(max(1, step))


def _points(store: CheckpointStore, phases: Phases, settings: Settings) -> tuple[int, ...]:
    """Checkpoints spread over the transition with some margin, and the last one."""
    start = (phases.start if phases.start > 0 else store.final // 2) - settings.before
    end = phases.end if phases.end > 0 else store.final
    chosen = {store.nearest(step) for step in np.linspace(max(1, start), end, settings.points)}
    return tuple(sorted(chosen | {store.final}))


def _best(results: Results, candidate: str) -> np.ndarray:
    """Best accuracies of all teachers' students of the smallest width."""
    return np.concatenate([next(iter(each.students.values()))[candidate].best for each in results.teachers])


@study.claim(Mean(above=0.95), at="Figure 4.5", paper="1.0 by 1.7 million steps")
def middle_teaches(results: Results) -> np.ndarray:
    """The checkpoint in the middle of the transition teaches the student.

    Best accuracy of the student.
    """
    return _best(results, "middle")


@study.claim(Mean(below=0.75), at="Figure 4.5", paper="0.5 through 2 million steps")
def before_does_not(results: Results) -> np.ndarray:
    """A checkpoint before the transition does not (while the one in the middle does).

    Best accuracy of the student; 1 where the middle's student stays below 0.75.
    """
    return np.where(_best(results, "middle") > 0.75, _best(results, "before"), 1.0)


@study.claim(Mean(below=0.75), at="Figure 4.5", paper="0.5 through 2 million steps")
def after_does_not(results: Results) -> np.ndarray:
    """Nor does the final one.

    Best accuracy of the student; 1 where the middle's student stays below 0.75.
    """
    return np.where(_best(results, "middle") > 0.75, _best(results, "final"), 1.0)


@study.claim(Ratio(above=3.0), at="Figure 4.5", paper="0.09 against 0.002")
def support_sticks_out(results: Results) -> list[float]:
    """Inside the transition the teacher correlates with the coordinates of the support, not with others.

    Mean |correlation| inside the support over that off it, at the checkpoint where the former is largest.
    """
    found = [each for teacher in results.teachers for each in teacher.correlations]
    return [float(each.inside[i, 0] / each.rest[i, 0]) for each in found for i in [int(each.inside[:, 0].argmax())]]


@study.claim(Ratio(below=1.5), at="Figure 4.5", paper="all below 0.01")
def then_vanishes(results: Results) -> list[float]:
    """The final teacher does not show the support any more.

    The same ratio at the final checkpoint; 10 where the ratio at the peak is below 3.
    """
    found = [each for teacher in results.teachers for each in teacher.correlations]
    last = [float(each.inside[-1, 0] / each.rest[-1, 0]) for each in found]
    return [ratio if top >= 3 else 10.0 for ratio, top in zip(last, support_sticks_out(results))]


@study.claim(Ratio(above=2.0), at="Figure 4.12", paper="a clean gap at degrees 2 and 3")
def higher_degrees(results: Results) -> list[float]:
    """In the transition the monomials of degrees 2 and 3 inside the support stick out too.

    The smaller of both degrees' largest ratios of mean |correlation| inside the support and off it.
    """
    found = [each for teacher in results.teachers for each in teacher.correlations]
    return [float((each.inside[:, 1:] / each.rest[:, 1:]).max(0).min()) for each in found]


@study.table
def candidates(results: Results) -> dict[str, Rows]:
    rows = [
        {
            "teacher": number, "seed": seed, "candidate": name, "step": steps[seed], "student's width": width,
            "best accuracy": float(students[name].best[seed]),
            "above 0.95 at": float(students[name].first_above()[seed]),
        }
        for number, teacher in enumerate(results.teachers)
        for width, students in teacher.students.items()
        for name, steps in teacher.candidates.items()
        for seed in range(len(steps))
    ]  # fmt: skip
    return {"candidates": rows}


@study.figure
def transition(results: Results) -> dict[str, Figure]:
    return {f"teacher {number + 1}": draw(teacher) for number, teacher in enumerate(results.teachers)}


def draw(teacher: Teacher) -> Figure:
    figure, axes = figures.new(
        columns=3, title="Checkpoints inside the transition teach, those before and after it do not"
    )
    figures.band(axes[0], teacher.curves.eval_steps, teacher.curves.accuracy, "teacher")
    for name, steps in teacher.candidates.items():
        axes[0].axvline(
            steps[0], linestyle=":", color=figures.COLOURS[1 + list(teacher.candidates).index(name)], label=name
        )
    axes[0].set(
        xlabel="teacher's step", ylabel="held-out accuracy", title="the teachers, and the first seed's candidates"
    )
    first = teacher.correlations[0]
    for degree in range(len(DEGREES)):
        (line,) = axes[1].plot(first.eval_steps, first.inside[:, degree], label=f"degree {degree + 1}, in the support")
        axes[1].plot(first.eval_steps, first.rest[:, degree], linestyle=":", color=line.get_color())
    axes[1].set(xlabel="teacher's step", ylabel="mean |correlation|", title="first seed (dotted: off the support)")
    for name, each in next(iter(teacher.students.values())).items():
        figures.band(axes[2], each.eval_steps, each.accuracy, name)
    axes[2].set(xlabel="student's step", ylabel="held-out accuracy", title="students")
    for axis in axes:
        axis.legend(fontsize=7)
    return figure


@study.figure
def coordinates(results: Results) -> Figure:
    """Coordinates × step of the first teacher's first seed."""
    first = results.teachers[0].correlations[0]
    figure, (axis,) = figures.new(width=6.4, title="How the first teacher correlates with each coordinate")
    figures.heatmap(axis, first.coordinates.T, x="checkpoint", y="coordinate (those of the support first)")
    axis.set_xticks(range(len(first.eval_steps)), [f"{step / 1000:g}k" for step in first.eval_steps], fontsize=7)
    return figure
