"""Induction heads: two layers do it at any length, one layer must grow with the length.

What followed the last occurrence of the current token? Depth answers, width only helps. The induction task asks at each
position for the token after the last earlier occurrence of the current one. Two layers solve it with one head and a
width that does not depend on the length T. One layer with H heads of width m and p bits of precision needs
H·m·p = Ω(T): the sequence a₁w₁a₂w₂…a_n asks for one bit out of n (INDEX, a problem of communication complexity), and
what a single layer can pass on is a sum.

**Set-up.** Uniform sequences of length T over T/2 tokens (so that occurrences lie about T/2 apart); transformers with
one head, learned positions, feed-forward and layer norm; AdamW 3·10⁻³ with cosine, 350 steps of 64 sequences; accuracy
on the second half of fresh sequences, where an answer exists. The statement is asymptotic; experiments at these lengths
illustrate it.

**In the figure.** Left: final accuracy by length. Right: accuracy over training at the longest length: two layers go
through a plateau, then jump.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean
from sandlab.studies.markov._shared import cosine
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.base import Batch
from sandlab.worlds.recall import KHopInduction


@dataclass(frozen=True)
class Answered(KHopInduction):
    """The induction task with the positions that have no answer left out of the loss."""

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        batch = super().sample(n, rng=rng)
        return replace(batch, mask=batch.truth["found"] >= 0)


def late_accuracy(now: Snapshot) -> dict[str, Tensor]:
    """Accuracy on the second half of the sequences, where an answer exists: "late accuracy"."""
    length = now.batch.inputs.shape[1]
    late = now.batch.mask & (torch.arange(length, device=now.device) >= length // 2)
    with evaluating(now.model), torch.no_grad():
        chosen = log_predictions(now.model, now.batch).argmax(-1)
    return {"late accuracy": (chosen == now.batch.targets)[:, late].double().mean(-1)}


@dataclass(frozen=True)
class Settings:
    """One layer at several lengths T (with T/2 different tokens) and widths, two layers with the largest width."""

    runs: tuple[Experiment, ...]


def experiment(length: int, layers: int, width: int, steps: int, lr: float, seeds: int) -> Experiment:
    world = Answered(length // 2, 1, length)
    model = TransformerConfig(world.vocab, length, layers, width=width, outputs=world.outputs, init_std=None)
    training = cosine(steps, 64, lr, evals=20, eval_examples=512)
    return Experiment(world, model, training, seeds, probes=(late_accuracy,))


def settings(lengths: tuple[int, ...], widths: tuple[int, ...], steps: int, lr: float, seeds: int) -> Settings:
    cases = [(length, 1, width) for length in lengths for width in widths]
    cases += [(length, 2, widths[-1]) for length in lengths]
    return Settings(tuple(experiment(*case, steps, lr, seeds) for case in cases))


QUICK = settings((16, 32, 48), (16, 64), steps=350, lr=3e-3, seeds=3)
study = Study(
    "markov/induction-depth-width",
    title="One layer must grow with the length, two layers need not",
    source="Sanford, Hsu & Telgarsky 2024, One-layer transformers fail to solve the induction heads task",
    quick=QUICK,
    full=settings((16, 32, 64, 128), (16, 64, 256), steps=2000, lr=2e-3, seeds=8),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """(length, layers, width) → runs; lengths and widths in increasing order."""

    runs: dict[tuple[int, int, int], Runs]
    lengths: list[int]
    widths: list[int]

    def final(self, length: int, layers: int, width: int) -> np.ndarray:
        """Accuracy of each seed at the end."""
        return self.runs[length, layers, width].metrics["late accuracy"][:, -1]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    models = [each.model for each in settings.runs if isinstance(each.model, TransformerConfig)]
    cases = [(model.length, model.layers, model.width) for model in models]
    lengths, widths = (sorted({case[axis] for case in cases}) for axis in (0, 2))
    return Results(dict(zip(cases, lab.train(settings.runs))), lengths, widths)


@study.claim(Mean(above=0.9))
def two_layers_flat(results: Results) -> np.ndarray:
    """Two layers of fixed width solve the induction task at every length.

    Smallest accuracy of two layers over lengths, mean over seeds.
    """
    return np.min([results.final(length, 2, results.widths[-1]) for length in results.lengths], axis=0)


@study.claim(Mean(below=-0.1))
def one_layer_falls(results: Results) -> np.ndarray:
    """At fixed width one layer gets worse with the length.

    Accuracy of one layer (widest) at the longest length minus that at the shortest, seed by seed.
    """
    short, long, wide = results.lengths[0], results.lengths[-1], results.widths[-1]
    return results.final(long, 1, wide) - results.final(short, 1, wide)


@study.claim(Mean(above=0.0))
def width_helps(results: Results) -> np.ndarray:
    """More width helps one layer.

    Accuracy of one layer at the shortest length, widest minus narrowest, seed by seed.
    """
    short, narrow, wide = results.lengths[0], results.widths[0], results.widths[-1]
    return results.final(short, 1, wide) - results.final(short, 1, narrow)


@study.claim(Mean(below=-0.4), note="the bound is ours, chosen with quick results and the null at hand")
def one_layer_fails(results: Results) -> np.ndarray:
    """At the longest length one layer is far from solving the task that two layers solve, at any width tried.

    Accuracy of one layer minus that of two (widest) at the longest length.
    """
    one, two = (results.final(results.lengths[-1], layers, results.widths[-1]) for layers in (1, 2))
    return one - two


@study.table
def by_model(results: Results) -> dict[str, Rows]:
    names = ("length", "layers", "width", "parameters", "accuracy")
    rows = [(*case, runs.parameters, float(results.final(*case).mean())) for case, runs in results.runs.items()]
    return {"accuracy": [dict(zip(names, row)) for row in rows]}


@study.figure
def accuracy(results: Results) -> Figure:
    figure, axes = figures.new(2, width=4.8, height=3.4, title="Two layers are flat in the length, one layer falls")
    longest = results.lengths[-1]
    for layers, width in [(2, results.widths[-1]), *((1, width) for width in reversed(results.widths))]:
        name = f"{layers} layer{'s' if layers > 1 else ''}, width {width}"
        table = np.stack([results.final(length, layers, width) for length in results.lengths], -1)
        figures.band(axes[0], results.lengths, table, label=name, marker="o")
        runs = results.runs[longest, layers, width]
        figures.band(axes[1], runs.eval_steps, runs.metrics["late accuracy"], label=name)
    axes[0].set(xlabel="length T (alphabet T/2)", ylabel="accuracy", ylim=(0, 1.03), title="after training")
    axes[0].set_xticks(results.lengths, [str(length) for length in results.lengths])
    axes[1].set(xlabel="step", ylim=(0, 1.03), title=f"over training, T = {longest}")
    axes[0].legend(loc="center right", fontsize=8)
    return figure
