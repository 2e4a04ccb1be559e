"""GPT-2 on the last tokens of spans: do checkpoints help, and the more the fewer tokens the loss counts?

Next-token prediction on cfg3f where the loss counts only the last tokens of spans of height ℓ (C^(ℓ)): the higher ℓ,
the fewer. Teachers keep N checkpoints, students are taught by half-length splits of them (κ = ½) or by the final one
alone. L_robust and L_close are ½‖p − q‖₁. Students of 16 heads and other grammars stand in
distillation/next-token-variants.

Quick: sentences of the symbols 13, 14, 15, ℓ = 2 and 3, two layers, 8 and 2 heads, budgets of 150 and 300 steps,
four seeds (three until 2026-11-18).

Full: the source's models (four layers, 32 heads against 8) at ℓ = 4, 3 and 2 on cfg3f, at a size that fits one GPU for
some minutes, decided from its cost before any run. Sentences start one level lower (`root`: of 19, 20 and 21, 100
tokens on average for 250, a factor of 2.5) and are cut after 168 tokens (`longest`; one in 150 is longer); `batch_size`
is 64 for 512 (an eighth), `steps` 2400 for 8000 (0.3), `budgets` 300, 600 and 2400 for 500 to 8000, `shots` the
source's 20, the rate 10⁻³, the smallest of the source's grid, for 5·10⁻³ (a fifth: encoders of this width collapsed at
2.5·10⁻³, see distillation/masked-grammar), no dropout (`dropout` 0 for the library's 0.1; the source's text is silent).
(Until 2026-11-18 batch 32, 1200 steps and 10 shots, never run.) One-shot is the better of τ = 1 and 10⁻⁴, as in the
source, in quick 10⁻⁴ alone.

**What was learnt** (quick, 2026-11-18). Checkpoints in turn teach less than the final teacher, by 0.01 to 0.03 in the
mean: for students of 150 or 300 steps the first ones know too little. Nothing is seen of a gain that shrinks with the
budget.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.lenses.distillation.ngram_dependence import NgramDependence
from sandlab.models.distillation.published import gpt2
from sandlab.studies.claims import Mean
from sandlab.studies.distillation import _courses as courses
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation._courses import Course, Taught
from sandlab.studies.distillation.transformers._fused import fuse_attention
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.distillation.grammar_tasks import BoundaryGrammar


@dataclass(frozen=True)
class Settings:
    """A course for each height (and grammar, and size of student)."""

    courses: tuple[Course, ...]


METHODS = ("labels", "one-shot", "progressive")


def boundary_course(name: str, world: BoundaryGrammar, heads: tuple[int, int], *, quick: bool) -> Course:
    """One course of GPT-2s."""
    size = {"steps": 400, "batch_size": 32, "lr": 5e-3, "seeds": 4, "evals": 20, "eval_examples": 256}
    if not quick:
        size = {"steps": 2400, "batch_size": 64, "lr": 1e-3, "seeds": 3, "evals": 20, "eval_examples": 512}
    layers, places = (2, (8, 14)) if quick else (4, (30, 70))
    probe = NgramDependence(ns=(3, 5), places=places, examples=64)
    teacher, student = (
        courses.recipe(world, gpt2(world.vocab, world.length, each, layers=layers, dropout=0.0), **size)  # type: ignore[arg-type]
        for each in heads
    )
    if not quick:
        bf16 = replace(teacher.training, precision="bf16")
        teacher, student = (replace(each, training=bf16, prepare=fuse_attention) for each in (teacher, student))
    budgets, shots = ((150, 300), 10) if quick else ((300, 600, 2400), 20)
    watched = replace(teacher, probes=(probe,))
    methods = METHODS if quick else (*METHODS, "one-shot, τ = 1")
    return Course(name, watched, student, budgets, shots=shots, kappa=0.5, methods=methods)


def height_course(name: str, height: int, student: int, *, quick: bool = False) -> Course:
    """The course of one grammar, height and size of student."""
    if quick:
        world = BoundaryGrammar(name, "13|14|15", height=height)
        return boundary_course(f"{name}, ℓ = {height}", world, (8, student), quick=True)
    world = BoundaryGrammar(name, "19|20|21", longest=168, height=height)
    return boundary_course(f"{name}, ℓ = {height}, {student} heads", world, (32, student), quick=False)


QUICK = Settings(tuple(height_course("cfg3f", height, 2, quick=True) for height in (3, 2)))
PUBLISHED = tuple(height_course("cfg3f", height, 8) for height in (4, 3, 2))
study = Study(
    "distillation/next-token",
    title="GPT-2 on the ends of spans: what checkpoints add to the final teacher",
    source=shared.SOURCE,
    at="Figures 4.31 to 4.33",
    quick=QUICK,
    full=Settings(PUBLISHED),
    null=untrained(Settings(tuple(replace(each, budgets=(10, 20)) for each in QUICK.courses))),
)


@dataclass(frozen=True)
class Results:
    courses: list[Taught]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    return Results([courses.teach(each, lab) for each in settings.courses])


@study.claim(Mean(above=0.0), at="Figures 4.33 and 4.34", paper="at all budgets")
def progressive_above_one_shot(results: Results) -> np.ndarray:
    """Checkpoints in turn teach better than the final teacher at every height and budget.

    Smallest difference of final accuracies, by seed.
    """
    return np.min([courses.gap(each, i) for each in results.courses for i in range(len(each.budgets))], 0)


@study.claim(Mean(above=0.0), at="Figures 4.33 and 4.34", paper="the gap shrinks with the budget")
def gap_shrinks(results: Results) -> np.ndarray:
    """The gain is larger at the smallest budget than at the largest.

    Mean over courses of the difference of gaps, by seed.
    """
    return np.mean([courses.gap(each, 0) - courses.gap(each, -1) for each in results.courses], 0)


@study.claim(Mean(above=0.0), at="Figures 4.33 and 4.34", paper="gap(ℓ = 4) > gap(ℓ = 2)", presets=("full",))
def gap_grows_with_height(results: Results) -> np.ndarray:
    """The gain is larger where fewer tokens count.

    Gap at ℓ = 4 minus gap at ℓ = 2 (8 heads), at the smallest budget.
    """
    by_name = {each.name: each for each in results.courses}
    return courses.gap(by_name["cfg3f, ℓ = 4, 8 heads"], 0) - courses.gap(by_name["cfg3f, ℓ = 2, 8 heads"], 0)


@study.claim(Mean(above=0.9), at="Figure 4.35", paper="above 0.90", presets=("full",))
def cfg3f_is_learnt(results: Results) -> np.ndarray:
    """At ℓ = 3 the student of 8 heads learns cfg3f.

    Final accuracy of the progressive student at the largest budget.
    """
    return {each.name: each for each in results.courses}["cfg3f, ℓ = 3, 8 heads"].of("progressive")


@study.table
def table(results: Results) -> dict[str, Rows]:
    return {"accuracies": courses.rows_of(results.courses)}


@study.figure
def budgets(results: Results) -> Figure:
    return courses.draw_budgets(results.courses, "Students of GPT-2 on the ends of spans")


@study.figure
def teachers(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, title="The teachers' accuracy and dependence on 3-grams")
    for each in results.courses:
        steps, metrics = each.teacher.eval_steps, each.teacher.metrics
        figures.band(axes[0], steps, metrics["accuracy"], each.name)
        for axis, measure in zip(axes[1:], ("robust", "close")):
            axis.plot(steps, np.median(metrics[measure][..., 0], 0), label=each.name)
    axes[0].set(xlabel="teacher's step", ylabel="held-out accuracy on span ends")
    axes[1].set(xlabel="teacher's step", ylabel="median L_robust of 3-grams")
    axes[2].set(xlabel="teacher's step", ylabel="median L_close of 3-grams")
    for axis in axes:
        axis.legend(fontsize=7)
    return figure
