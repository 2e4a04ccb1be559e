"""What a large BERT relies on and knows along the way: does L_close fall, and when is the tree known?

The teacher of distillation/masked-grammar alone, watched at every evaluation: its loss, L_close(n) (how far a
prediction from the n-gram alone is from the one from the whole sentence) and a linear probe of the non-terminals.
C1 is the middle of the rapid phase, where the loss has come half the way down. Distances of distributions are
½‖p − q‖₁ in quick and, as in the authors' code, ‖p − q‖₁ in full.

Quick: sentences of the symbols 13, 14 and 15 (22 tokens), two layers, 16 heads, batch 64, the rate 5·10⁻³, four seeds:
the specification's size, at which there is no clean plateau before the drop. The probe has 4 heads of width 32 and
reads 2048 sentences once.

Full: the teacher of distillation/masked-grammar's full preset (32 heads, four layers, sentences of 52 tokens for 276,
batch 256 for 512, 2400 `steps` for 8000 at the rate 10⁻³ for 5·10⁻³; its text says why), three seeds, probed at 17
evaluations with the source's probe (16 heads of width 256) after 6400 sentences for four passes over 51 200.

Changed after a first look at quick: C1 was sought from the untrained loss downwards, which put it at the first
evaluation, before the drop; it is sought from the first trained one since. Neither bound was changed.

**What was learnt** (quick, 2026-11-18). On sentences of 22 tokens L_close(3) goes on rising after C1 (1.7 times higher
at the end): here the teacher is only beginning to use more than n-grams. Non-terminals can be read off untrained
vectors with 0.77 and off the final ones with 0.80 to 0.83, too little apart to say when they are learnt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.distillation.phases import loss_phases
from sandlab.learning.experiment import Experiment, Runs
from sandlab.lenses.distillation.ngram_dependence import NgramDependence
from sandlab.lenses.distillation.nonterminals import NonterminalProbe
from sandlab.models.distillation.published import bert
from sandlab.studies.claims import Mean, Ratio
from sandlab.studies.distillation import _courses as courses
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation.transformers._fused import fuse_attention
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.distillation.grammar_tasks import MaskedGrammar

LEARNT = 0.05
"""Accuracy of the probe above that on untrained weights from which a teacher counts as one that learns the tree."""


@dataclass(frozen=True)
class Settings:
    """The teacher, with its probes of n-grams (which must have n = 3) and of non-terminals."""

    teacher: Experiment
    ngrams: NgramDependence
    nonterminals: NonterminalProbe


SHORT = MaskedGrammar("cfg3b", root="13|14|15")
QUICK = Settings(
    courses.recipe(
        SHORT, bert(SHORT.vocab, SHORT.length, 16, layers=2, dropout=0.0),
        steps=600, batch_size=64, lr=5e-3, seeds=4, evals=12, eval_examples=256,
    ),
    NgramDependence(ns=(3, 5), places=(6, 10, 14), examples=64),
    NonterminalProbe(),
)  # fmt: skip
LONG = MaskedGrammar("cfg3b", root="16|17|18")
TEACHER = courses.recipe(
    LONG, bert(LONG.vocab, LONG.length, 32, dropout=0.0),
    steps=2400, batch_size=256, lr=1e-3, seeds=3, evals=16, eval_examples=256, precision="bf16",
)  # fmt: skip
FULL = Settings(
    replace(TEACHER, prepare=fuse_attention),
    NgramDependence(ns=(3, 5), places=(15, 25, 35), examples=64, tv="l1"),
    NonterminalProbe(train=6400, heads=16, width=256),
)
study = Study(
    "distillation/teacher-phases",
    title="What a large BERT takes from n-grams and knows of the tree along the way",
    source=shared.SOURCE,
    at="Figure 4.25",
    quick=QUICK,
    full=FULL,
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    runs: Runs
    ns: tuple[int, ...]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    watched = replace(settings.teacher, probes=(settings.ngrams, settings.nonterminals))
    return Results(lab.train(watched, label="teachers"), settings.ngrams.ns)


def middles(results: Results) -> np.ndarray:
    """The evaluation of each teacher at C1; the plateau before the drop is that of a trained model, not of step 0."""
    steps, losses = results.runs.eval_steps[1:], results.runs.metrics["loss"][:, 1:]
    return np.array([1 + int(np.flatnonzero(steps == loss_phases(steps, row).middle)[0]) for row in losses])


def close(results: Results, n: int = 3) -> np.ndarray:
    """Median L_close(n) (seed, evaluation)."""
    return results.runs.metrics["close"][..., results.ns.index(n)]


def known(results: Results) -> np.ndarray:
    """Accuracy of the probe below the root, mean over layers (seed, evaluation)."""
    return results.runs.metrics["nonterminals"][..., 1:].mean(-1)


@study.claim(Ratio(below=1.0), at="Figure 4.25", paper="falls after C1")
def ngrams_come_to_suffice(results: Results) -> np.ndarray:
    """After the rapid phase the 3-gram alone predicts more like the whole sentence.

    Median L_close(3) at the end over that at C1.
    """
    rows = np.arange(len(middles(results)))
    return close(results)[:, -1] / np.maximum(close(results)[rows, middles(results)], 1e-9)


@study.claim(Mean(above=0.95), at="Figure 4.25", paper="above 95 % of its final value by the middle of the rapid phase")
def tree_is_known_early(results: Results) -> np.ndarray:
    """In the middle of the rapid phase non-terminals can be read off almost as well as at the end.

    Accuracy of the probe at C1 over that at the end, mean over layers below the root; 0 where the end is not 0.05
    above untrained weights.
    """
    accuracy = known(results)
    at_middle = accuracy[np.arange(len(accuracy)), middles(results)]
    return np.where(accuracy[:, -1] > accuracy[:, 0] + LEARNT, at_middle / accuracy[:, -1], 0.0)


@study.table
def table(results: Results) -> dict[str, Rows]:
    steps, loss, accuracy = results.runs.eval_steps, results.runs.metrics["loss"], known(results)
    return {
        "teachers": [
            {
                "seed": seed, "C1": int(steps[middle]), "loss at C1": float(loss[row, middle]),
                "loss at the end": float(loss[row, -1]), "L_close(3) at C1": float(close(results)[row, middle]),
                "L_close(3) at the end": float(close(results)[row, -1]), "probe, untrained": float(accuracy[row, 0]),
                "probe at C1": float(accuracy[row, middle]), "probe at the end": float(accuracy[row, -1]),
            }
            for row, (seed, middle) in enumerate(zip(results.runs.seeds, middles(results)))
        ]
    }  # fmt: skip


@study.figure
def phases(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, title="What the teacher relies on and knows along the way")
    steps, metrics = results.runs.eval_steps, results.runs.metrics
    figures.band(axes[0], steps, metrics["loss"], "teachers")
    axes[0].set(xlabel="teacher's step", ylabel="held-out loss (nats)")
    for index, n in enumerate(results.ns):
        figures.band(axes[1], steps, metrics["close"][..., index], f"{n}-grams")
    axes[1].set(xlabel="teacher's step", ylabel="median L_close")
    for layer in range(1, metrics["nonterminals"].shape[-1]):
        figures.band(axes[2], steps, metrics["nonterminals"][..., layer], f"layer {layer + 1} of the tree")
    axes[2].set(xlabel="teacher's step", ylabel="accuracy, non-terminals")
    for axis in axes:
        axis.axvline(float(np.median(steps[middles(results)])), linestyle=":", color="0.4", label="C1")
        axis.legend(fontsize=7)
    return figure
