"""Attention recalls, recurrence tracks states; a hybrid recalls, but tracks less well than the best, at equal weights.

Five families of about the same number of weights on four tasks. What is known: retrieval, copying and associative
recall need a state that grows with what is stored, which attention has and a recurrence of fixed size has not;
composing permutations (S₅) or tracking parity needs depth that grows with the length from attention, and none from a
recurrence; one attention layer among recurrent ones is enough for recall.

**Set-up.** A transformer of two layers, an Elman network, an LSTM, a selective state-space model (gates in [0, 1])
and a hybrid of one state-space and one attention layer, all trained alike. Copying and recall are scored on their
answers, parity and S₅ at every position. Quick: recall and S₅ alone, words of twelve letters, 800 batches. Full: all
four tasks, longer, with 4000 batches of 64.

**What was learnt** (quick, 2026-11-16). With one attention layer the hybrid recalls everything, but it does not do
both: on S₅ it reaches 0.88, behind the state-space model (0.91), the transformer (0.976) and the RNN (0.985), and not
within the 5 % of the best family that the specification asks for. On four pairs the state-space model recalls as well
as attention: the state need not grow at this size.

At full size (five seeds, one H200, 2026-11-18; recall of 16 pairs in 4000 batches) the state-space model recalls 88 %
and the hybrid everything, LSTM 19 %, Elman network 6 %: copying and recall separate attention from recurrence, S₅ and
parity the other way round (RNN and LSTM 1.00; transformer 0.94 and 0.86). The hybrid is again behind on S₅ (0.87):
with half of its layers in each family it has one of either.

**In the figure.** Final accuracy of each family on each task; points are seeds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.models.base import Config
from sandlab.models.hybrid import HybridConfig
from sandlab.models.recurrent import LSTMConfig, RNNConfig
from sandlab.models.state_space import StateSpaceConfig
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.counters import Cyclic
from sandlab.worlds.automata.rotations import SymmetricGroup
from sandlab.worlds.base import World
from sandlab.worlds.recall import AssociativeRecall, CopyString

FAMILIES = ("transformer", "RNN", "LSTM", "state space", "hybrid")


def family(name: str, world: World, length: int, width: int) -> Config:
    """A model of the family with about 24·width² weights besides embedding and readout."""
    vocab, outputs = world.vocab, world.outputs
    if name == "transformer":
        return TransformerConfig(vocab, length, 2, heads=4, width=width, outputs=outputs, init_std=None)
    if name == "RNN":
        return RNNConfig(vocab=vocab, width=5 * width // 2, layers=2, outputs=outputs, recurrent_start="orthogonal")
    if name == "LSTM":
        return LSTMConfig(vocab=vocab, width=7 * width // 4, layers=1, outputs=outputs)
    if name == "state space":
        return StateSpaceConfig(vocab=vocab, width=width, layers=2, outputs=outputs, mlp="gelu")
    return HybridConfig(
        vocab=vocab, width=width, layers=2, outputs=outputs, length=length, attention_at=(1,), heads=4, mlp="gelu"
    )


@dataclass(frozen=True)
class Settings:
    """Tasks by name, and the runs of each family on each of them (task by task, in the order of `FAMILIES`)."""

    tasks: tuple[str, ...]
    runs: tuple[Experiment, ...]


def settings(worlds: dict[str, tuple[World, int]], training: Training, *, width: int, seeds: int) -> Settings:
    runs = [
        Experiment(world, family(name, world, length, width), training, seeds)
        for world, length in worlds.values()
        for name in FAMILIES
    ]
    return Settings(tuple(worlds), tuple(runs))


QUICK = settings(
    {
        "recall": (AssociativeRecall(8, 8, 4, 4), 12),
        "S5": (SymmetricGroup(points=5, length=12, letters_used=2), 12),
    },
    Training(steps=800, batch_size=64, lr=3e-3, schedule="cosine", warmup=50, clip=1.0, evals=4, eval_examples=512),
    width=32, seeds=3,
)  # fmt: skip
study = Study(
    "expressivity/architectures",
    title="Attention recalls, recurrence tracks states; a hybrid recalls, but tracks states less well",
    source="Jelassi et al. 2024; Arora et al. 2024; Merrill & Sabharwal 2022; Liu et al. 2023; Wen, Dang & Lyu 2024",
    quick=QUICK,
    full=settings(
        {
            "copying": (CopyString(states=16, size=24), 48),
            "recall": (AssociativeRecall(24, 24, 12, 12), 36),
            "parity": (Cyclic(size=2, length=40), 40),
            "S5": (SymmetricGroup(points=5, length=20, letters_used=2), 20),
        },
        Training(
            steps=4000, batch_size=64, lr=2e-3, schedule="cosine", warmup=200, clip=1.0, evals=30, eval_examples=1024,
            precision="tf32",
        ),
        width=48, seeds=5,
    ),
    null=untrained(QUICK),
)  # fmt: skip


@dataclass(frozen=True)
class Results:
    """Task → family → runs."""

    runs: dict[str, dict[str, Runs]]

    def accuracy(self, task: str, name: str) -> np.ndarray:
        """Final accuracy of each seed."""
        if task not in self.runs:
            raise NotMeasured(f"the task {task} was left out")
        return self.runs[task][name].metrics["accuracy"][:, -1]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    runs = iter(lab.train(settings.runs, label="architectures"))
    return Results({task: {name: next(runs) for name in FAMILIES} for task in settings.tasks})


@study.claim(Mean(above=0.0), paper="Transformer > RNN on recall")
def attention_recalls(results: Results) -> np.ndarray:
    """The transformer recalls better than recurrent networks of equal size.

    Accuracy on recall, transformer minus the better of RNN and LSTM (by mean), seed by seed.
    """
    recurrent = max((results.accuracy("recall", name) for name in ("RNN", "LSTM")), key=np.mean)
    return results.accuracy("recall", "transformer") - recurrent


@study.claim(Mean(above=0.0), paper="RNN > limited-depth transformer on S₅")
def recurrence_tracks(results: Results) -> np.ndarray:
    """A recurrent network tracks S₅ better than a transformer of two layers.

    Accuracy on S₅, the better of RNN and LSTM (by mean) minus transformer, seed by seed.
    """
    recurrent = max((results.accuracy("S5", name) for name in ("RNN", "LSTM")), key=np.mean)
    return recurrent - results.accuracy("S5", "transformer")


@study.claim(Mean(above=-0.05), paper="one attention layer suffices")
def hybrid_recalls(results: Results) -> np.ndarray:
    """The hybrid recalls as well as the best family.

    Accuracy on recall, hybrid minus the best of the others (by mean), seed by seed.
    """
    best = max((results.accuracy("recall", name) for name in FAMILIES if name != "hybrid"), key=np.mean)
    if best.mean() < 0.5:
        raise NotMeasured("no family recalls")
    return results.accuracy("recall", "hybrid") - best


@study.claim(Mean(above=-0.05), source="Specification, E-CMP", paper="hybrid ≥ max − 5 %")
def hybrid_tracks(results: Results) -> np.ndarray:
    """The hybrid tracks S₅ as well as the best family.

    Accuracy on S₅, hybrid minus the best of the others (by mean), seed by seed.
    """
    best = max((results.accuracy("S5", name) for name in FAMILIES if name != "hybrid"), key=np.mean)
    if best.mean() < 0.5:
        raise NotMeasured("no family tracks S₅")
    return results.accuracy("S5", "hybrid") - best


@study.claim(Mean(above=0.0), paper="retrieval needs a growing state")
def hybrid_beats_its_recurrence(results: Results) -> np.ndarray:
    """With one attention layer the state-space model recalls better than without.

    Accuracy on recall, hybrid minus state space, seed by seed.
    """
    return results.accuracy("recall", "hybrid") - results.accuracy("recall", "state space")


@study.claim(Mean(above=0.0), presets=("full",), paper="Transformer > RNN on copying")
def attention_copies(results: Results) -> np.ndarray:
    """The transformer copies better than recurrent networks of equal size.

    Accuracy on copying, transformer minus the better of RNN and LSTM (by mean), seed by seed.
    """
    recurrent = max((results.accuracy("copying", name) for name in ("RNN", "LSTM")), key=np.mean)
    return results.accuracy("copying", "transformer") - recurrent


@study.claim(Mean(above=0.0), presets=("full",), paper="positive gates cannot track parity")
def recurrence_counts_parity(results: Results) -> np.ndarray:
    """The recurrent networks track parity better than a state-space model with positive gates.

    Accuracy on parity, the better of RNN and LSTM (by mean) minus state space, seed by seed.
    """
    recurrent = max((results.accuracy("parity", name) for name in ("RNN", "LSTM")), key=np.mean)
    return recurrent - results.accuracy("parity", "state space")


@study.table
def table(results: Results) -> dict[str, Rows]:
    rows = [
        {
            "task": task, "family": name, "parameters": runs.parameters,
            "accuracy": float(results.accuracy(task, name).mean()),
        }
        for task, by_family in results.runs.items()
        for name, runs in by_family.items()
    ]  # fmt: skip
    return {"accuracy": rows}


@study.figure
def accuracy(results: Results) -> Figure:
    tasks = list(results.runs)
    title = "Attention recalls, recurrence tracks states, at equal size"
    figure, axes = figures.new(len(tasks), width=3.6, height=3.4, title=title)
    for axis, task in zip(axes, tasks):
        for place, name in enumerate(FAMILIES):
            values = results.accuracy(task, name)
            axis.bar(place, values.mean(), color=figures.COLOURS[place], alpha=0.85)
            axis.plot([place] * len(values), values, "k.", markersize=4)
        axis.set_xticks(range(len(FAMILIES)), FAMILIES, rotation=30, ha="right", fontsize=8)
        axis.set(title=task, ylim=(0, 1.03))
    axes[0].set_ylabel("accuracy")
    return figure
