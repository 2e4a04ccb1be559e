"""Schedules, temperatures, mask rates and grammars: where progressive distillation of BERT gains, and where not.

Four comparisons on the course of distillation/masked-grammar: equal splits of the student's run against splits of half
the teacher's (Figure 4.27); temperatures 1 and 10⁻⁴ (4.28); mask rates of 15, 30 and 50 % (4.29; the source's rates
are not given); the grammars cfg3b, cfg3h and cfg3i (4.30). Quick trains small models on short sentences with four
seeds (three until 2026-11-18): it shows that every variant runs and asks only whether distillation beats the labels.

Full: the source's models (four layers, 32 heads against 8), N = 8 and κ = ½, at a size that fits one GPU for two
minutes, decided before any run of its own, from its cost and from that of distillation/masked-grammar, whose teachers
collapsed at the rate 2.5·10⁻³ and whose students needed 1500 steps of 32 long sentences to begin. Sentences start two
levels lower (`root`: of 16, 17 and 18, 52 tokens on average for 276 in cfg3b, a factor of 5); `batch_size` is 64 for
512 (an eighth), `steps` 1200 for 8000 (0.15), `budgets` 300 and 1200 for 2000 to 16 000 (0.15 of two of four), the
rate 10⁻³, the smallest of the source's grid, for 5·10⁻³ (a fifth), no dropout. `courses` are 5 of 6: students of 16
heads are left out. Such encoders leave the plateau after some 350 steps with 16 heads and before 250 with 32 (single
ones of another seed, this rate and batch).
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

EVERY = ("labels", "one-shot", "one-shot, τ = 1", "progressive", "progressive, τ = 1", "equal split")


@dataclass(frozen=True)
class Settings:
    """A course for each variant; the first is the standard one."""

    courses: tuple[Course, ...]


def variant(
    name: str, world: MaskedGrammar, heads: tuple[int, int], *, quick: bool, methods: tuple[str, ...]
) -> Course:
    """One course: BERTs of the given heads on a world."""
    size = {"steps": 300, "batch_size": 32, "lr": 5e-3, "seeds": 4, "evals": 4, "eval_examples": 256}
    if not quick:
        size = {"steps": 1200, "batch_size": 64, "lr": 1e-3, "seeds": 3, "evals": 8, "eval_examples": 256}
    layers = 2 if quick else 4
    teacher, student = (
        courses.recipe(world, bert(world.vocab, world.length, each, layers=layers, dropout=0.0), **size)  # type: ignore[arg-type]
        for each in heads
    )
    if not quick:
        bf16 = replace(teacher.training, precision="bf16")
        teacher, student = (replace(each, training=bf16, prepare=fuse_attention) for each in (teacher, student))
    budgets = (200,) if quick else (300, 1200)
    return Course(name, teacher, student, budgets, shots=4 if quick else 8, kappa=0.5, methods=methods)


def all_variants(quick: bool) -> tuple[Course, ...]:
    """The standard course with every method, then other mask rates and grammars."""
    root, few = ("13|14|15", (8, 4)) if quick else ("16|17|18", (32, 8))
    plain = ("labels", "one-shot", "progressive")
    found = [variant("cfg3b, 30 %", MaskedGrammar("cfg3b", root), few, quick=quick, methods=EVERY)]
    found += [
        variant(f"cfg3b, {rate:.0%}", MaskedGrammar("cfg3b", root, rate=rate), few, quick=quick, methods=plain)
        for rate in (0.15, 0.5)
    ]
    found += [
        variant(f"{name}, 30 %", MaskedGrammar(name, root), few, quick=quick, methods=plain)
        for name in ("cfg3h", "cfg3i")
    ]
    return tuple(found)


QUICK = Settings(all_variants(True))
study = Study(
    "distillation/grammar-variants",
    title="Distillation of BERT on grammars: schedules, temperatures, mask rates and grammars side by side",
    source=shared.SOURCE,
    at="Figures 4.27 to 4.30",
    quick=QUICK,
    full=Settings(all_variants(False)),
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


@study.claim(Mean(above=0.0), at="Figure 4.27", paper="both splits beat one-shot", presets=("full",))
def splits_above_one_shot(results: Results) -> np.ndarray:
    """Both ways to split the run beat one-shot at the smallest budget.

    Smaller difference of final accuracies.
    """
    first = results.courses[0]
    return np.minimum(courses.gap(first, 0), courses.gap(first, 0, "equal split"))


@study.claim(Mean(above=0.0), at="Figure 4.28", paper="τ = 10⁻⁴ above τ = 1", presets=("full",))
def cold_progressive_is_better(results: Results) -> np.ndarray:
    """Cold checkpoints teach better than warm ones.

    Final accuracy of the progressive student at τ = 10⁻⁴ minus that at τ = 1, at the smallest budget.
    """
    first = results.courses[0]
    return first.accuracy["progressive"][0] - first.accuracy["progressive, τ = 1"][0]


@study.claim(Mean(above=0.0), at="Figure 4.29", paper="positive at all mask rates", presets=("full",))
def every_mask_rate(results: Results) -> np.ndarray:
    """Progressive distillation gains at every mask rate.

    Smallest difference to one-shot over mask rates, at the smallest budget.
    """
    rates = [each for each in results.courses if each.name.startswith("cfg3b") and each.name.endswith("%")]
    return np.min([courses.gap(each, 0) for each in rates], 0)


@study.claim(Mean(below=0.85), at="Figure 4.30", paper="about 0.75", presets=("full",))
def cfg3i_is_capped(results: Results) -> np.ndarray:
    """On cfg3i small students stay far from perfect.

    Final accuracy of the progressive student at the largest budget.
    """
    (found,) = [each for each in results.courses if each.name.startswith("cfg3i")]
    return found.of("progressive")


@study.table
def table(results: Results) -> dict[str, Rows]:
    return {"accuracies": courses.rows_of(results.courses)}


@study.figure
def budgets(results: Results) -> Figure:
    return courses.draw_budgets(results.courses, "Final accuracies of students in every variant")
