"""BERT on sentences of cfg3b: does distillation beat the labels, and do n-grams come and go?

A teacher with many heads learns masked prediction and keeps its checkpoints; students with few heads are trained on the
labels, on the final teacher (the better of τ = 1 and 10⁻⁴) and on N checkpoints in turn. During the teacher's rapid
phase its predictions lean on the neighbouring n-gram: L_robust, the change of a prediction when the n-gram around the
token is masked, rises and falls again. (2, T) schedules ask which checkpoint teaches best. Distances of distributions
are ½‖p − q‖₁ in quick and, as in the authors' code, ‖p − q‖₁ in full.

Quick: sentences of the symbols 13, 14 and 15 (22 tokens; one in 17 is longer than 24 and cut there), two layers, 16
and 4 heads, batch 64, six seeds. (Until 2026-11-18 batch 32 with three and then four seeds, which left every claim
open; then whole sentences and three places of n-grams for two, which took longer than three minutes.) In trials at this
size distillation beat the labels by 0.01 to 0.04, while progressive and one-shot differed by less than seeds do: that
comparison is made by the full preset alone. Until 2026-11-19 one-shot was τ = 10⁻⁴ alone (0.011 ± 0.025 above the
labels with whole sentences, −0.002 ± 0.025 with cut ones); τ = 1 was added after that look, since the source and the
claim speak of the better one. Teachers and all other students came out as before.

**What was learnt** (quick, 2026-11-19). The final teacher at τ = 1 is 0.026 above the labels (the interval begins at
0.002), at 10⁻⁴ it is as good as they are; checkpoints in turn are between both. Five of six teachers lean on 3-grams
most inside the run, by 1.1 to 1.6 times: a rise, and a small fall.

Full: the source's models (four layers, 32 and 8 heads), N = 8 and κ = 1, at a size that fits one GPU for some
minutes. Sentences start two levels lower (`root`: of 16, 17 and 18, 52 tokens on average for 276, a factor of 5);
`batch_size` is 256 for 512 (half), the teacher's `steps` 2400 for 8000 and `budgets` of 600 to 4800 for 2000 to
16 000 (0.3); the rate is 10⁻³, the smallest of the source's grid, for 5·10⁻³ (a fifth), one rate for a grid of five;
no dropout (`dropout` 0 for the library's 0.1; the source's text is silent). `two_shot` has seven first checkpoints
and T = 300 for eleven and four T (7 of 44 pairs). L_robust is measured at 3 places of 64 sentences for 14 of 1024,
non-terminals are probed after one pass over 12 800 sentences for four over 51 200. What the source reads at 2000,
4000, 8000 and 16 000 steps, and claims say in its words, is read at the four budgets in turn.

Changed before any run: the claim about L_robust first counted the share of teachers with an interior maximum, which
three seeds cannot decide; it became the ratio of the maximum to the ends.

**In full as it was first** (sentences of 139 tokens, 1600 steps of 32 at the rate 2.5·10⁻³; one H200,
2026-11-18). No teacher learnt: all three encoders of 32 heads fell from the plateau without context (loss 1.05) to
equal shares for the three words (1.098) between steps 200 and 500, and taught that. On the labels 8 and 16 heads stay
on the plateau (accuracy 0.45) for 1500 steps; 8 heads reach 0.61 after 3200. The verdicts of that run say that its
preset was too short and its rate too high for the larger model, nothing about distillation. The present preset comes
from single encoders of another seed, before any run of its own: on 64 of its sentences a step, at 10⁻³, one of 16
heads left the plateau after 350 steps and ended at 0.56 after 600, one of 32 heads was at 0.55 after 250. It
has 256 sentences a step since 2026-11-18 (128 before, never run): what falls after the rapid phase is seen only when
the teacher gets past it, which the source's does after 10⁶ sentences; here there are 6·10⁵ shorter ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.lenses.distillation.ngram_dependence import NgramDependence
from sandlab.lenses.distillation.nonterminals import NonterminalProbe
from sandlab.models.distillation.published import bert
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean, NotMeasured, Ratio
from sandlab.studies.distillation import _courses as courses
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation._courses import Course, Taught, interior_peak
from sandlab.studies.distillation.transformers._fused import fuse_attention
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.distillation.grammar_tasks import MaskedGrammar


@dataclass(frozen=True)
class Settings:
    """The course, and other sizes of teachers that are trained on the labels (Figure 4.26)."""

    course: Course
    heads: tuple[int, ...] = ()


WORLD = MaskedGrammar("cfg3b", root="13|14|15", longest=24)
SMALL_PROBE = NgramDependence(ns=(3, 5), places=(8, 14), examples=64)


def course(
    world: MaskedGrammar,
    heads: tuple[int, int],
    layers: int,
    dropout: float,
    probe: NgramDependence,
    **options: Any,
) -> Course:
    """A course of BERTs; options of the recipe, and budgets and schedules of the course."""
    own = {name: options.pop(name) for name in list(options) if name in Course.__dataclass_fields__}
    final = options.pop("final", ())
    teacher, student = (
        courses.recipe(world, bert(world.vocab, world.length, each, layers=layers, dropout=dropout), **options)
        for each in heads
    )
    teacher = replace(teacher, probes=(probe,))
    return Course("cfg3b", teacher, replace(student, final=(probe, *final)), **own)


QUICK = Settings(
    course(
        WORLD, (16, 4), 2, 0.0, SMALL_PROBE, steps=600, batch_size=64, lr=5e-3, seeds=6, evals=12, eval_examples=256,
        budgets=(400,), shots=4, kappa=0.5,
    )
)  # fmt: skip
CURVE = NgramDependence(ns=(3, 5), places=(15, 25, 35), examples=64, tv="l1")
CANDIDATES = (150, 300, 450, 600, 900, 1200, 1800)
PUBLISHED = MaskedGrammar("cfg3b", root="16|17|18")
BUDGETS = (600, 1200, 2400, 4800)
PLAIN = course(
    PUBLISHED, (32, 8), 4, 0.0, CURVE, steps=2400, batch_size=256, lr=1e-3, seeds=3, evals=16, eval_examples=256,
    precision="bf16", budgets=BUDGETS, shots=8, kappa=1.0, two_shot=tuple((step, 300) for step in CANDIDATES),
    two_shot_budget=1200, teacher_budgets=BUDGETS, final=(NonterminalProbe(train=12_800, heads=16, width=256),),
)  # fmt: skip
FULL = Settings(
    replace(
        PLAIN,
        teacher=replace(PLAIN.teacher, prepare=fuse_attention),
        student=replace(PLAIN.student, prepare=fuse_attention),
    ),
    heads=(8, 16),
)
READ_OFF = {
    2000: (0.745, 0.768, 0.803, 0.910),
    4000: (0.866, 0.902, 0.922, 0.960),
    8000: (0.926, 0.928, 0.958, 0.970),
    16_000: (0.927, 0.953, 0.963, 0.980),
}
"""Figure 4.4 (right), read off: steps → accuracies of labels, one-shot, progressive and the teacher's size."""
study = Study(
    "distillation/masked-grammar",
    title="A small BERT and a grammar: what labels, a large BERT and its checkpoints in turn teach",
    source=shared.SOURCE,
    at="Figures 4.4 (right), 4.7, 4.8 and 4.26",
    quick=QUICK,
    full=FULL,
    null=untrained(replace(QUICK, course=replace(QUICK.course, budgets=(12,)))),
)


@dataclass(frozen=True)
class Results:
    taught: Taught
    ns: tuple[int, ...]
    sizes: dict[int, np.ndarray]
    """Heads → accuracy (seed, evaluation) on the labels."""


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    chosen = settings.course
    probe = chosen.teacher.probes[0]
    assert isinstance(probe, NgramDependence)
    world = chosen.teacher.world
    assert isinstance(world, MaskedGrammar)
    model = chosen.teacher.model
    assert isinstance(model, TransformerConfig) and model.head_width is not None
    models = {heads: replace(model, heads=heads, width=heads * model.head_width) for heads in settings.heads}
    others = lab.train([replace(chosen.teacher, model=model, probes=()) for model in models.values()], label="sizes")
    taught = courses.teach(chosen, lab)
    sizes = {heads: runs.metrics["accuracy"] for heads, runs in zip(models, others)}
    return Results(taught, probe.ns, sizes)


def robust(results: Results, n: int = 3) -> np.ndarray:
    """Median L_robust(n) of the teachers (seed, evaluation)."""
    return results.taught.teacher.metrics["robust"][..., results.ns.index(n)]


@study.claim(Mean(above=0.08), at="Figure 4.4 (right)", paper="0.970 against 0.926 at 8000 steps", presets=("quick",))
def teacher_above_student(results: Results) -> np.ndarray:
    """The teacher is clearly better than the student of the labels.

    Teacher's final accuracy minus the student's.
    """
    return results.taught.teacher.metrics["accuracy"][:, -1] - results.taught.of("labels")


@study.claim(Mean(above=0.0), at="Figure 4.4 (right)", paper="0.902 against 0.866 at 4000 steps")
def distillation_above_labels(results: Results) -> np.ndarray:
    """The final teacher teaches better than the labels.

    Final accuracy of the better one-shot student minus that of the student of the labels (full: at 4000 steps).
    """
    index = 1 if len(results.taught.budgets) > 1 else 0
    return results.taught.one_shot(index) - results.taught.accuracy["labels"][index]


@study.claim(Ratio(above=1.1), at="Figure 4.7 (middle)", paper="0.009 at 600 steps, 0.8 at 1000, 0.00005 at 8000")
def ngrams_come_and_go(results: Results) -> np.ndarray:
    """The teacher's dependence on 3-grams rises and falls.

    Largest median L_robust(3) inside the run over the larger one of its first and last evaluation.
    """
    return interior_peak(robust(results))


def _gaps(results: Results, other: str) -> np.ndarray:
    taught, indices = results.taught, (1, 2)
    if len(taught.budgets) <= max(indices):
        raise NotMeasured("three budgets: half the teacher's steps is the second, all of them the third")
    compared = [taught.one_shot(i) if other == "one-shot" else taught.accuracy[other][i] for i in indices]
    return np.min([taught.accuracy["progressive"][i] - each for i, each in zip(indices, compared)], 0)


@study.claim(
    Mean(above=0.01), at="Figure 4.4 (right)", paper="0.922 against 0.902 and 0.958 against 0.928", presets=("full",)
)
def progressive_above_one_shot(results: Results) -> np.ndarray:
    """Checkpoints in turn teach better than the final teacher.

    Smaller difference of final accuracies at the second and third budget (half the teacher's steps, and all of them).
    """
    return _gaps(results, "one-shot")


@study.claim(
    Mean(above=0.01), at="Figure 4.4 (right)", paper="0.922 against 0.866 and 0.958 against 0.926", presets=("full",)
)
def progressive_above_labels(results: Results) -> np.ndarray:
    """And better than the labels.

    Smaller difference of final accuracies at the second and third budget (half the teacher's steps, and all of them).
    """
    return _gaps(results, "labels")


@study.claim(Mean(below=1.5), at="Figure 4.7", paper="both at 1000 steps", presets=("full",))
def best_checkpoint_is_the_peak(results: Results) -> list[float]:
    """The checkpoint that teaches best is the one that depends most on 3-grams.

    Grid points between the best first checkpoint of (2, T) and the largest L_robust(3), by seed (asked: at most one).
    """
    steps = sorted({step for step, _, _ in results.taught.two_shot})
    if not steps:
        raise NotMeasured("(2, T) schedules")
    by_step = np.array([np.max([v for step, _, v in results.taught.two_shot if step == each], 0) for each in steps])
    tops = results.taught.teacher.eval_steps[np.nanargmax(robust(results), 1)]
    places = [int(np.abs(np.array(steps) - top).argmin()) for top in tops]
    return [float(abs(place - int(best))) for place, best in zip(places, by_step.argmax(0))]


@study.claim(Mean(below=0.0), at="Figure 4.8", paper="lower for all n", presets=("full",))
def student_leans_less_on_ngrams(results: Results) -> np.ndarray:
    """The progressive student depends less on n-grams than the one-shot student.

    Difference of the mean over n of their median L_robust.
    """
    final = results.taught.final
    return final["progressive"]["robust"].mean(1) - final["one-shot"]["robust"].mean(1)


@study.claim(Mean(above=0.0), at="Figure 4.8", paper="higher, most at higher levels", presets=("full",))
def student_knows_nonterminals(results: Results) -> np.ndarray:
    """Non-terminals can be read off the progressive student better.

    Difference of the mean probe accuracy over levels, progressive minus one-shot.
    """
    final = results.taught.final
    return final["progressive"]["nonterminals"].mean(1) - final["one-shot"]["nonterminals"].mean(1)


def reaches(steps: np.ndarray, accuracy: np.ndarray, share: float = 0.8) -> np.ndarray:
    """Where each curve (seed, evaluation) first reaches a share of its last value, on straight lines between points."""
    found = []
    for row in accuracy:
        level = share * row[-1]
        after = int((row >= level).argmax())
        if after == 0:
            found.append(max(1.0, float(steps[0])))
            continue
        part = (level - row[after - 1]) / (row[after] - row[after - 1])
        found.append(float(steps[after - 1] + part * (steps[after] - steps[after - 1])))
    return np.array(found)


@study.claim(Ratio(below=1.0), at="Figure 4.26", paper="more heads drop earlier", presets=("full",))
def more_heads_learn_earlier(results: Results) -> np.ndarray:
    """The more heads, the earlier the rapid phase.

    Step at which the teachers reach 80 % of their final accuracy over that of models with the fewest heads; 10 where
    the teacher ends below 0.5, little above what needs no context.
    """
    if not results.sizes:
        raise NotMeasured("models with other numbers of heads")
    teacher = results.taught.teacher
    few = results.sizes[min(results.sizes)]
    many = teacher.metrics["accuracy"]
    return np.where(many[:, -1] > 0.5, reaches(teacher.eval_steps, many) / reaches(teacher.eval_steps, few), 10.0)


@study.table
def table(results: Results) -> dict[str, Rows]:
    two = [
        {"first checkpoint": step, "T": each, "accuracy": float(values.mean())}
        for step, each, values in results.taught.two_shot
    ]
    found = {"accuracies": courses.rows_of([results.taught]), "here and published": beside_published(results)}
    return {name: rows for name, rows in (found | {"two-shot": two}).items() if rows}


def beside_published(results: Results) -> Rows:
    """The four budgets in turn beside the numbers read off the source's figure (± 0.005)."""
    taught = results.taught
    if len(taught.budgets) != len(READ_OFF) or taught.bigger is None:
        return []
    here = {
        "labels": taught.accuracy["labels"].mean(1),
        "one-shot": [taught.one_shot(index).mean() for index in range(len(taught.budgets))],
        "progressive": taught.accuracy["progressive"].mean(1),
        "teacher's size": taught.bigger.mean(1),
    }
    return [
        {
            "steps here": budget, "steps published": steps,
            **{
                key: value
                for index, name in enumerate(here)
                for key, value in ((f"{name}, here", float(here[name][place])), (f"{name}, published", numbers[index]))
            },
        }
        for place, (budget, (steps, numbers)) in enumerate(zip(taught.budgets, READ_OFF.items()))
    ]  # fmt: skip


@study.figure
def phases(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, title="The teacher's loss, and how far it depends on n-grams")
    steps, metrics = results.taught.teacher.eval_steps, results.taught.teacher.metrics
    figures.band(axes[0], steps, metrics["loss"], "teacher")
    figures.levels(axes[0], {"no context": WORLD.plateau[0]})
    axes[0].set(xlabel="teacher's step", ylabel="held-out loss (nats)")
    for index, n in enumerate(results.ns):
        figures.band(axes[1], steps, metrics["robust"][..., index], f"{n}-grams")
        axes[2].plot(steps, np.median(metrics["close"][..., index], 0), label=f"{n}-grams")
    axes[1].set(xlabel="teacher's step", ylabel="median L_robust")
    axes[2].set(xlabel="teacher's step", ylabel="median L_close")
    for axis in axes[1:]:
        axis.legend(fontsize=8)
    return figure


@study.figure
def students(results: Results) -> Figure:
    columns = 2 if results.taught.two_shot else 1
    figure, axes = figures.new(columns=columns, width=5.4, title="What students of each method reach")
    for method, values in results.taught.accuracy.items():
        budgets = results.taught.budgets
        axes[0].errorbar(budgets, values.mean(1), yerr=values.std(1), marker="o", capsize=2, label=method)
    axes[0].set(xlabel="training steps of the student", ylabel="final held-out accuracy")
    axes[0].legend(fontsize=8)
    for each in sorted({each for _, each, _ in results.taught.two_shot}):
        points = [(step, float(v.mean())) for step, t, v in results.taught.two_shot if t == each]
        axes[1].plot(*zip(*sorted(points)), marker="o", label=f"T = {each}")
    if results.taught.two_shot:
        axes[1].set(xlabel="first checkpoint (teacher's step)", ylabel="final accuracy of (2, T)")
        axes[1].legend(fontsize=8)
    return figure


@study.figure
def sizes(results: Results) -> dict[str, Figure]:
    """Models of other sizes on the labels, and where each reaches 80 % of its final accuracy (Figure 4.26)."""
    if not results.sizes:
        return {}
    steps, teacher = results.taught.teacher.eval_steps, results.taught.teacher.metrics["accuracy"]
    figure, (axis,) = figures.new(width=5.6, title="Models with more and fewer heads on the labels")
    named = {f"{heads} heads": curves for heads, curves in results.sizes.items()}
    for name, curves in {**named, "teacher": teacher}.items():
        figures.band(axis, steps, curves, name)
        axis.axvline(float(np.median(reaches(steps, curves))), linestyle=":", color=axis.lines[-1].get_color())
    axis.set(xlabel="training step", ylabel="held-out accuracy")
    axis.legend(fontsize=8)
    return {"sizes": figure}


@study.figure
def knowledge(results: Results) -> dict[str, Figure]:
    """Of the students of the largest budget (Figure 4.8); only where their non-terminals were probed."""
    final = {name: each for name, each in results.taught.final.items() if "nonterminals" in each}
    if not final:
        return {}
    figure, axes = figures.new(columns=3, title="What students of each method rely on and know")
    for axis, measure in zip(axes, ("robust", "close", "nonterminals")):
        for name, each in final.items():
            values = each[measure]
            places = np.arange(1, values.shape[1] + 1) if measure == "nonterminals" else np.array(results.ns)
            axis.errorbar(places, values.mean(0), yerr=values.std(0), marker="o", capsize=2, label=name)
            axis.set_xticks(places)
    axes[0].set(xlabel="n", ylabel="median L_robust")
    axes[1].set(xlabel="n", ylabel="median L_close")
    axes[2].set(xlabel="layer of the tree (the root is 1)", ylabel="accuracy, non-terminals")
    axes[0].legend(fontsize=7)
    return {"knowledge": figure}
