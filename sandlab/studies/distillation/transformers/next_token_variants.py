"""GPT-2 on the ends of spans with larger students, and on other grammars.

The courses of distillation/next-token with students of half the teacher's heads instead of a quarter, at several
heights ℓ (Figure 4.34), and at ℓ = 3 with the small students on cfg3f, cfg3g and cfg3h (4.35). Of cfg3g the source says
that its students stop near 0.84, with little gained after 500 steps; beside cfg3f, whose students pass 0.90, that is
what is asked here.

Quick: sentences of the symbols 13, 14, 15, two layers, teachers of 8 heads for 300 steps of 32, students of 4 heads at
ℓ = 3 and 2 and of 2 heads on cfg3f and cfg3g, budgets of 100 and 200 steps, four seeds; cfg3h is left to full.

Full: the sizes of distillation/next-token's full preset, whose text says how they are reduced, with students of the
source's 16 heads at ℓ = 4, 3 and 2 and of 8 heads on the three grammars (sentences of 100 tokens and more, cut after
168).

**What was learnt** (quick, 2026-11-18). Students of one or two hundred steps learn less from checkpoints in turn (0.58
to 0.65) than from the final teacher (0.64 to 0.71), as in distillation/next-token: the first checkpoints know too
little. More steps help them less on cfg3g; that it is harder than cfg3f is not seen on sentences this short.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab.models.distillation.published import gpt2
from sandlab.studies.claims import Mean
from sandlab.studies.distillation import _courses as courses
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation._courses import Course, Taught
from sandlab.studies.distillation.next_token import METHODS, height_course
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.distillation.grammar_tasks import BoundaryGrammar

UNLEARNT = 0.5
"""Accuracy below which a student of cfg3f has not learnt what its grammar is compared by."""


@dataclass(frozen=True)
class Settings:
    """Courses with larger students, highest ℓ first; courses of grammars, cfg3f and cfg3g first."""

    sizes: tuple[Course, ...]
    grammars: tuple[Course, ...]


def small(grammar: str, height: int, heads: int) -> Course:
    """A course for two cores."""
    world = BoundaryGrammar(grammar, "13|14|15", height=height)
    teacher, student = (
        courses.recipe(
            world, gpt2(world.vocab, world.length, each, layers=2, dropout=0.0),
            steps=300, batch_size=32, lr=5e-3, seeds=4, evals=10, eval_examples=256,
        )
        for each in (8, heads)
    )  # fmt: skip
    name = f"{grammar}, ℓ = {height}, {heads} heads"
    return Course(name, teacher, student, (100, 200), shots=10, kappa=0.5, methods=METHODS)


def short(course: Course) -> Course:
    return replace(course, budgets=(10, 20))


QUICK = Settings(
    tuple(small("cfg3f", height, 4) for height in (3, 2)), tuple(small(name, 3, 2) for name in ("cfg3f", "cfg3g"))
)
FULL = Settings(
    tuple(height_course("cfg3f", height, 16) for height in (4, 3, 2)),
    tuple(height_course(name, 3, 8) for name in ("cfg3f", "cfg3g", "cfg3h")),
)
study = Study(
    "distillation/next-token-variants",
    title="GPT-2 on the ends of spans: students of half the teacher's heads, and other grammars",
    source=shared.SOURCE,
    at="Figures 4.34 and 4.35",
    quick=QUICK,
    full=FULL,
    null=untrained(Settings(tuple(map(short, QUICK.sizes)), tuple(map(short, QUICK.grammars)))),
)


@dataclass(frozen=True)
class Results:
    sizes: list[Taught]
    grammars: list[Taught]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    return Results(*([courses.teach(each, lab) for each in group] for group in (settings.sizes, settings.grammars)))


@study.claim(Mean(above=0.0), at="Figure 4.34", paper="at all budgets")
def progressive_above_one_shot(results: Results) -> np.ndarray:
    """Checkpoints in turn teach larger students better than the final teacher at every height and budget.

    Smallest difference of final accuracies, by seed.
    """
    return np.min([courses.gap(each, index) for each in results.sizes for index in range(len(each.budgets))], 0)


@study.claim(Mean(above=0.0), at="Figure 4.34", paper="the gap shrinks with the budget")
def gap_shrinks(results: Results) -> np.ndarray:
    """The gain is larger at the smallest budget than at the largest.

    Mean over heights of the difference of gaps, by seed.
    """
    return np.mean([courses.gap(each, 0) - courses.gap(each, -1) for each in results.sizes], 0)


@study.claim(Mean(above=0.0), at="Figure 4.34", paper="the gap shrinks with ℓ")
def gap_grows_with_height(results: Results) -> np.ndarray:
    """The gain is larger where fewer tokens count.

    Gap at the largest ℓ minus gap at the smallest, at the smallest budget.
    """
    return courses.gap(results.sizes[0], 0) - courses.gap(results.sizes[-1], 0)


@study.claim(Mean(above=0.0), at="Figure 4.35", paper="above 0.90 against 0.84")
def cfg3g_is_harder(results: Results) -> np.ndarray:
    """Students end lower on cfg3g than on cfg3f.

    Difference of the progressive students' accuracies at the largest budget; −1 where the one on cfg3f is below 0.5.
    """
    first, second = (each.of("progressive") for each in results.grammars[:2])
    return np.where(first > UNLEARNT, first - second, -1.0)


@study.claim(Mean(below=0.0), at="Figure 4.35", paper="marginal gains after 500 steps")
def cfg3g_gains_less_from_more_steps(results: Results) -> np.ndarray:
    """More steps help less on cfg3g than on cfg3f.

    What the progressive student gains from the smallest to the largest budget, cfg3g minus cfg3f.
    """
    first, second = (
        each.accuracy["progressive"][-1] - each.accuracy["progressive"][0] for each in results.grammars[:2]
    )
    return second - first


@study.table
def table(results: Results) -> dict[str, Rows]:
    return {"larger students": courses.rows_of(results.sizes), "grammars": courses.rows_of(results.grammars)}


@study.figure
def larger_students(results: Results) -> Figure:
    return courses.draw_budgets(results.sizes, "Students of half the teacher's heads on the ends of spans")


@study.figure
def grammars(results: Results) -> Figure:
    return courses.draw_budgets(results.grammars, "Small students on the ends of spans of several grammars")
