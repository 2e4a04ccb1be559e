"""The Wikipedia experiment as a recipe over a text of one's own.

BERT on masked words: a teacher keeps checkpoints, students are taught by labels, the final teacher and the checkpoints
in turn, at τ → 0. L_robust is ½‖p − q‖₁. `--set path=corpus.txt` names a text file, split at white space; without one,
quick trains tiny models on a generated stand-in, which says nothing about natural language: it only shows that the
recipe runs.

Full reads `wikitext-2.txt` in the folder it is run in: the validation and test texts of WikiText-2 (Merity et al. 2016)
one after the other, 455 000 words. It keeps the source's ratio of 12 heads to 4 and its 15 checkpoints, at a size that
fits a share of one GPU for some minutes and a text that small, decided before any run: 4 layers for 12 (a third), 6 and
2 heads of width 32 for 12 and 4 of 64 (a quarter of the width), 6000 `words` for 30 000 (a fifth), 3000 steps for
120 000 and `budgets` of 600 to 3000 for 24 000 to 120 000 (a fortieth), the rate 10⁻³ for 10⁻⁴ (ten times, as there
are fewer steps), no dropout. Batch and length are not stated in the source: 128 windows of 64 words, 54 passes over
nine tenths of the text (32 windows until 2026-11-18, never run: 300 masked words a step are few to leave the plateau of
word frequencies, 6.1 nats here, within 3000 steps).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Training
from sandlab.lenses.distillation.ngram_dependence import NgramDependence
from sandlab.models.distillation.published import bert
from sandlab.studies.claims import Mean, Ratio
from sandlab.studies.distillation import _courses as courses
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation._courses import Course, Taught, interior_peak
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.distillation.text import MaskedText

TRAINING = courses.training(300, batch_size=32, lr=3e-3, evals=15, eval_examples=256)


@dataclass(frozen=True)
class Settings:
    """The text ("": generated) and the sizes.

    words, window       words kept, words of an example
    layers, heads       of teacher and student; head_width
    training, budgets   of the teacher; steps of the students
    shots               checkpoints that teach in turn, κ = ½ of the teacher's run
    """

    path: str = ""
    words: int = 200
    window: int = 24
    layers: int = 2
    heads: tuple[int, int] = (8, 2)
    head_width: int = 8
    training: Training = TRAINING
    budgets: tuple[int, ...] = (200,)
    shots: int = 5
    seeds: int = 4
    dropout: float = 0.0


study = Study(
    "distillation/text",
    title="What labels, a large BERT and its checkpoints teach a small one on text: a recipe over one's own",
    source=shared.SOURCE,
    at="Figure 4.9",
    quick=Settings(),
    full=Settings(
        path="wikitext-2.txt", words=6000, window=64, layers=4, heads=(6, 2), head_width=32,
        training=courses.training(3000, batch_size=128, lr=1e-3, evals=15, eval_examples=256, precision="bf16"),
        budgets=(600, 1500, 3000), shots=15, seeds=3,
    ),
    null=Settings(training=replace(TRAINING, lr=0.0, steps=15, warmup=0), budgets=(15,)),
)  # fmt: skip


@dataclass(frozen=True)
class Results:
    taught: Taught
    digest: str


def course(settings: Settings) -> Course:
    """The recipe: masked words at 15 %, Adam, τ → 0, κ = ½."""
    world = MaskedText(settings.path, settings.words, settings.window)
    places = tuple(range(settings.window // 4, settings.window, max(1, settings.window // 4)))
    probe = NgramDependence(ns=(3,), places=places, examples=64)
    teacher, student = (
        Experiment(
            world,
            bert(
                world.vocab, world.length, heads, layers=settings.layers, head_width=settings.head_width,
                dropout=settings.dropout,
            ),
            settings.training,
            settings.seeds,
        )
        for heads in settings.heads
    )  # fmt: skip
    watched = replace(teacher, probes=(probe,))
    methods = ("labels", "one-shot", "progressive")
    return Course("text", watched, student, settings.budgets, settings.shots, 0.5, methods, tau=1e-20)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    chosen = course(settings)
    world = chosen.teacher.world
    assert isinstance(world, MaskedText)
    return Results(courses.teach(chosen, lab), world.digest)


@study.claim(Mean(above=0.0), at="Figure 4.9", paper="0.02 at 24 000 steps", presets=("full",))
def progressive_above_one_shot(results: Results) -> np.ndarray:
    """Checkpoints in turn teach better than the final teacher.

    Difference of top-1 accuracies at the smallest budget.
    """
    return courses.gap(results.taught, 0)


@study.claim(Ratio(above=1.1), at="Figure 4.9", paper="0.004, then 0.25, then 0.001", presets=("full",))
def ngrams_come_and_go(results: Results) -> np.ndarray:
    """The teacher's dependence on 3-grams rises and falls.

    Largest median L_robust(3) inside the run over the larger one of its first and last evaluation.
    """
    return interior_peak(results.taught.teacher.metrics["robust"][..., 0])


@study.claim(Mean(below=-0.05), at="Figure 4.9", paper="6.5 to 2.2 nats")
def teacher_learns(results: Results) -> np.ndarray:
    """The teacher learns from the text.

    Last held-out loss minus the first, in nats.
    """
    loss = results.taught.teacher.metrics["loss"]
    return loss[:, -1] - loss[:, 0]


@study.table
def table(results: Results) -> dict[str, Rows]:
    rows = courses.rows_of([results.taught])
    return {"accuracies": [{"text": results.digest, **row} for row in rows]}


@study.figure
def learning(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, title="A teacher on text, and its students")
    steps, metrics = results.taught.teacher.eval_steps, results.taught.teacher.metrics
    figures.band(axes[0], steps, metrics["loss"], "teacher")
    axes[0].set(xlabel="teacher's step", ylabel="held-out loss (nats)")
    figures.band(axes[1], steps, metrics["robust"][..., 0], "3-grams")
    axes[1].set(xlabel="teacher's step", ylabel="median L_robust")
    for method, values in results.taught.accuracy.items():
        axes[2].plot(results.taught.budgets, values.mean(1), marker="o", label=method)
    axes[2].set(xlabel="training steps of the student", ylabel="final top-1 accuracy")
    axes[2].legend(fontsize=8)
    return figure
