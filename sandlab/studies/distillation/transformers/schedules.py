"""How to split a student's run among checkpoints, and how cold these should be, for students of two sizes.

BERT on cfg3b at a mask rate of 30 %: equal splits of the student's run against splits of half the teacher's
(Figure 4.27), and temperatures 1 and 10⁻⁴ (4.28), with students of a quarter and of half the teacher's heads.

Quick: the small course of distillation/grammar-variants (sentences of 22 tokens, two layers, teachers of 8 heads and
T₀ = 300 steps) with students of 2 and 4 heads and budgets of 100 and 300 steps; four seeds.

Full: the course of distillation/grammar-variants, whose text says how it is reduced (sentences of 52 tokens for 276,
batch 128 for 512, T₀ = 2400 for 8000), with students of the source's 8 and 16 heads and all four budgets (600 to 4800
for 2000 to 16 000).

**What was learnt** (quick, 2026-11-18). What half splits gain over one-shot shrinks by 0.03 from 100 to 300 steps; all
other differences are within 0.02 and undecided with four seeds. At this size every checkpoint is one of a teacher that
is still learning fast.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab.studies.claims import Mean
from sandlab.studies.distillation import _courses as courses
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation._courses import METHODS, Course, Taught
from sandlab.studies.distillation.grammar_variants import large, small
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.distillation.grammar_tasks import MaskedGrammar


@dataclass(frozen=True)
class Settings:
    """A course for each size of students, smallest first; their teachers are the same."""

    courses: tuple[Course, ...]


def every_method(course: Course) -> Course:
    return replace(course, methods=METHODS)


SHORT, LONG = MaskedGrammar("cfg3b", "13|14|15"), MaskedGrammar("cfg3b", "16|17|18")
QUICK = Settings(tuple(every_method(small(f"{heads} heads", SHORT, (8, heads), (100, 300))) for heads in (2, 4)))
FULL = Settings(tuple(every_method(large(f"{heads} heads", LONG, heads, (600, 1200, 2400, 4800))) for heads in (8, 16)))
study = Study(
    "distillation/schedules",
    title="How a student's run is split among checkpoints, and how cold they are, side by side",
    source=shared.SOURCE,
    at="Figures 4.27 and 4.28",
    quick=QUICK,
    full=FULL,
    null=untrained(Settings(tuple(replace(each, budgets=(8, 16)) for each in QUICK.courses))),
)


@dataclass(frozen=True)
class Results:
    courses: list[Taught]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    return Results([courses.teach(each, lab) for each in settings.courses])


@study.claim(Mean(above=0.0), at="Figure 4.27", paper="both splits beat one-shot")
def splits_above_one_shot(results: Results) -> np.ndarray:
    """Both ways to split the run beat one-shot at the smallest budget, whatever the student's size.

    Smallest difference of final accuracies to the better one-shot student.
    """
    ways = ("progressive", "equal split")
    return np.min([courses.gap(each, 0, way) for each in results.courses for way in ways], 0)


@study.claim(Mean(above=0.0), at="Figure 4.27", paper="T₀/2 is better when S < T₀")
def half_split_for_short_runs(results: Results) -> np.ndarray:
    """In a run shorter than the teacher's, checkpoints of half the teacher's pace teach better than equal shares.

    Final accuracy of the half split minus that of the equal split at the smallest budget, mean over students' sizes.
    """
    return np.mean([difference(each, 0) for each in results.courses], 0)


@study.claim(Mean(below=0.0), at="Figure 4.27", paper="the other when S ≥ T₀")
def equal_split_for_long_runs(results: Results) -> np.ndarray:
    """In a run at least as long, equal shares teach better.

    The same difference at the largest budget.
    """
    return np.mean([difference(each, -1) for each in results.courses], 0)


def difference(taught: Taught, index: int) -> np.ndarray:
    """Accuracy of the split of half the teacher's run minus that of the equal split, by seed."""
    return taught.accuracy["progressive"][index] - taught.accuracy["equal split"][index]


@study.claim(Mean(above=0.0), at="Figure 4.27", paper="the gap shrinks with S")
def gap_shrinks(results: Results) -> np.ndarray:
    """The gain over one-shot is larger at the smallest budget than at the largest.

    Difference of the half split's gaps, mean over students' sizes.
    """
    return np.mean([courses.gap(each, 0) - courses.gap(each, -1) for each in results.courses], 0)


@study.claim(Mean(above=0.0), at="Figure 4.28", paper="τ = 10⁻⁴ above τ = 1")
def cold_progressive_is_better(results: Results) -> np.ndarray:
    """Cold checkpoints teach better than warm ones.

    Final accuracy of the progressive student at τ = 10⁻⁴ minus that at τ = 1, at the smallest budget; mean over
    students' sizes.
    """
    found = [each.accuracy["progressive"][0] - each.accuracy["progressive, τ = 1"][0] for each in results.courses]
    return np.mean(found, 0)


@study.claim(Mean(below=0.0), at="Figure 4.28", paper="can be worse than one-shot with 16 heads")
def warm_checkpoints_can_hurt(results: Results) -> np.ndarray:
    """Warm checkpoints teach the larger student worse than the final teacher does.

    Final accuracy of the progressive student at τ = 1 minus that of the better one-shot student, mean over budgets.
    """
    last = results.courses[-1]
    return np.mean([courses.gap(last, index, "progressive, τ = 1") for index in range(len(last.budgets))], 0)


@study.table
def table(results: Results) -> dict[str, Rows]:
    return {"accuracies": courses.rows_of(results.courses)}


@study.figure
def budgets(results: Results) -> Figure:
    return courses.draw_budgets(results.courses, "Final accuracies of students of every schedule and temperature")
