"""Mask rates, grammars and sizes of students: where progressive distillation of BERT gains, and where not.

Two comparisons on the course of distillation/masked-grammar: mask rates of 15, 30 and 50 % (Figure 4.29; the source's
rates are not given) and the grammars cfg3b, cfg3h and cfg3i with students of two sizes (4.30). Schedules and
temperatures, and students of 16 heads on cfg3b, stand in distillation/schedules. Quick trains small models on short
sentences with four seeds and one size of students: it shows that every variant runs and asks only whether distillation
beats the labels.

Full: the source's models (four layers, 32 heads against 8 and 16), N = 8 and κ = ½, at a size that fits one GPU for
some minutes, decided before any run of its own. Sentences start two levels lower (`root`: of 16, 17 and 18, 52 tokens
on average for 276 in cfg3b, a factor of 5); `batch_size` is 128 for 512 (a quarter), `steps` 2400 for 8000 (0.3),
`budgets` 600 and 2400 for 2000 to 16 000 (0.3 of two of four), the rate 10⁻³, the smallest of the source's grid, for
5·10⁻³ (a fifth), no dropout; one-shot is the better of τ = 1 and 10⁻⁴, in quick 10⁻⁴ alone. (Batch 64 and 1200 steps
until 2026-11-18, never run: after so few sentences a teacher is inside its rapid phase, and a one-shot student needs
one that is past it.) Encoders on cfg3b leave the plateau after some 350 steps of 64 sentences with 16 heads and before
250 with 32 (single ones of another seed, this rate).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab.models.distillation.published import bert
from sandlab.studies.claims import Mean
from sandlab.studies.distillation import _courses as courses
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation._courses import Course, Taught
from sandlab.studies.distillation.transformers._fused import fuse_attention
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.distillation.grammar_tasks import MaskedGrammar


@dataclass(frozen=True)
class Settings:
    """A course for each variant; the first is the standard one."""

    courses: tuple[Course, ...]


METHODS = ("labels", "one-shot", "progressive")


def small(name: str, world: MaskedGrammar, heads: tuple[int, int], budgets: tuple[int, ...] = (200,)) -> Course:
    """A course for two cores: two layers, 300 steps of 32 short sentences."""
    teacher, student = (
        courses.recipe(
            world, bert(world.vocab, world.length, each, layers=2, dropout=0.0),
            steps=300, batch_size=32, lr=5e-3, seeds=4, evals=4, eval_examples=256,
        )
        for each in heads
    )  # fmt: skip
    return Course(name, teacher, student, budgets, shots=4, kappa=0.5, methods=METHODS)


def large(name: str, world: MaskedGrammar, student: int, budgets: tuple[int, ...] = (600, 2400)) -> Course:
    """The source's models on one GPU."""
    teacher, taught = (
        replace(
            courses.recipe(
                world, bert(world.vocab, world.length, each, layers=4, dropout=0.0),
                steps=2400, batch_size=128, lr=1e-3, seeds=3, evals=8, eval_examples=256, precision="bf16",
            ),
            prepare=fuse_attention,
        )
        for each in (32, student)
    )  # fmt: skip
    return Course(name, teacher, taught, budgets, shots=8, kappa=0.5, methods=(*METHODS, "one-shot, τ = 1"))


RATES, GRAMMARS = (0.3, 0.15, 0.5), ("cfg3h", "cfg3i")


def worlds(root: str) -> dict[str, MaskedGrammar]:
    """The standard one, other mask rates, other grammars."""
    found = {f"cfg3b, {rate:.0%}": MaskedGrammar("cfg3b", root, rate=rate) for rate in RATES}
    return found | {f"{name}, 30%": MaskedGrammar(name, root) for name in GRAMMARS}


QUICK = Settings(tuple(small(name, world, (8, 4)) for name, world in worlds("13|14|15").items()))
FULL = Settings(
    tuple(
        large(f"{name}, {student} heads", world, student)
        for name, world in worlds("16|17|18").items()
        for student in ((8,) if name.startswith("cfg3b") else (8, 16))
    )
)
study = Study(
    "distillation/grammar-variants",
    title="Distillation of BERT on grammars: mask rates, grammars and sizes of students side by side",
    source=shared.SOURCE,
    at="Figures 4.29 and 4.30",
    quick=QUICK,
    full=FULL,
    null=untrained(Settings(tuple(replace(each, budgets=(8,)) for each in QUICK.courses))),
)


@dataclass(frozen=True)
class Results:
    courses: list[Taught]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    return Results([courses.teach(each, lab) for each in settings.courses])


@study.claim(Mean(above=0.0), at="Figure 4.30", paper="distillation is better")
def distillation_above_labels(results: Results) -> np.ndarray:
    """The final teacher teaches better than the labels, over all variants.

    Mean over variants of the difference of final accuracies at the first budget, by seed.
    """
    return np.mean([each.one_shot(0) - each.accuracy["labels"][0] for each in results.courses], 0)


@study.claim(Mean(above=0.0), at="Figure 4.29", paper="positive at all mask rates", presets=("full",))
def every_mask_rate(results: Results) -> np.ndarray:
    """Progressive distillation gains at every mask rate.

    Smallest difference to one-shot over mask rates, at the smallest budget.
    """
    rates = [each for each in results.courses if each.name.startswith("cfg3b")]
    return np.min([courses.gap(each, 0) for each in rates], 0)


@study.claim(Mean(above=0.0), at="Figure 4.29", paper="decreases with S", presets=("full",))
def gain_shrinks(results: Results) -> np.ndarray:
    """The gain is larger at the smallest budget than at the largest.

    Difference of gaps, mean over mask rates.
    """
    rates = [each for each in results.courses if each.name.startswith("cfg3b")]
    return np.mean([courses.gap(each, 0) - courses.gap(each, -1) for each in rates], 0)


@study.claim(Mean(above=0.0), at="Figure 4.30", paper="better with students of 8 and of 16 heads", presets=("full",))
def every_grammar(results: Results) -> np.ndarray:
    """Progressive distillation gains on every grammar and with both sizes of students.

    Smallest difference to one-shot over grammars and sizes (mask rate 30 %), at the smallest budget.
    """
    standard = [each for each in results.courses if " 30%" in each.name]
    return np.min([courses.gap(each, 0) for each in standard], 0)


@study.claim(Mean(below=0.85), at="Figure 4.30", paper="about 0.75", presets=("full",))
def cfg3i_is_capped(results: Results) -> np.ndarray:
    """On cfg3i students of either size stay far from perfect.

    Final accuracy of the better progressive student at the largest budget.
    """
    found = [each for each in results.courses if each.name.startswith("cfg3i")]
    return np.max([each.of("progressive") for each in found], 0)


@study.table
def table(results: Results) -> dict[str, Rows]:
    return {"accuracies": courses.rows_of(results.courses)}


@study.figure
def budgets(results: Results) -> Figure:
    return courses.draw_budgets(results.courses, "Final accuracies of students in every variant")
