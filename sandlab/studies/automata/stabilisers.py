"""What stabilises training: averaged weights, dropout, patience with the learning rate.

Training on automata is unstable; three remedies of the source, each against its absence. Averaged weights:
w̄ ← γ w̄ + (1 − γ) w after every step, evaluated next to w on the same words; the learning rate stays constant, so
that w keeps moving. Dropout of residual branches, attention and embeddings. A scheduler that halves the rate when the
loss on fixed words has not decreased for a number of evaluations (its patience).

Published: γ in {0.85, 0.9, 0.95}, dropout in {0, 0.1, 0.2, 0.3}, two patiences, length 100. Quick: C₂ with 12 letters,
γ = 0.9, 700 batches of 32 words at rate 2e-3, an evaluation every 10, 8 seeds. Full: C₂ with 16 letters and three γ;
dropout on D₈, Q₈, Grid₉ and Dyck (16 letters, 4 layers of width 128, 3000 batches); patiences of 1 and 8 evaluations on
C₂ (12 letters, 2 layers, 1000 batches); 5 seeds.

What to look for: the thin line (plain weights) is ragged, the thick one (averaged) runs through its middle. With
γ = 0.9 the average reaches back about ten steps: it removes noise between neighbouring steps, not the differences
between seeds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.learning.schedules import ReduceLROnPlateau
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.automata._shared import SOURCE, accuracy, best, recipe, transformer
from sandlab.studies.claims import Mean, NotMeasured, Ratio
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.catalogue import named_machine

GROUPS, MEMORIES = ("D8", "Q8"), ("Grid9", "Dyck4_2")


@dataclass(frozen=True)
class Settings:
    """Decays of the average, dropout rates and patiences (in evaluations); the experiments they are applied to.

    The experiments with dropout are on the groups D₈ and Q₈, then on the memories Grid₉ and Dyck.
    """

    decays: tuple[float, ...]
    rates: tuple[float, ...]
    patiences: tuple[int, ...]
    average: Experiment
    dropout: tuple[Experiment, ...]
    patience: Experiment


def settings(length: int, steps: int, seeds: int, **sweeps: Any) -> Settings:
    """Words of `length` and `steps` updates for the averages; the other comparisons have one size."""
    moving = recipe(steps, batch_size=32, lr=2e-3, schedule="constant", evals=70)
    machines = [named_machine(name, length=16) for name in GROUPS + MEMORIES]
    return Settings(
        average=transformer(named_machine("C2", length=length), moving, seeds),
        dropout=tuple(transformer(each, recipe(3000), seeds, layers=4, width=128) for each in machines),
        patience=transformer(named_machine("C2", length=12), recipe(1000, evals=40), seeds),
        **sweeps,
    )


QUICK = settings(12, 700, seeds=8, decays=(0.9,), rates=(), patiences=())
SWEEPS = {"decays": (0.85, 0.9, 0.95), "rates": (0.0, 0.1, 0.2, 0.3), "patiences": (1, 8)}
study = Study(
    "automata/stabilisers",
    title="Averaged weights remove a third and more of the jitter of training curves, and cost nothing",
    source=SOURCE,
    at="§5.1 and appendix on training",
    quick=QUICK,
    full=settings(16, 3000, seeds=5, **SWEEPS),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """Runs by decay of the average; by dropout rate and automaton; by patience."""

    averages: dict[float, Runs]
    dropouts: dict[float, dict[str, Runs]]
    patiences: dict[int, Runs]

    @property
    def plain(self) -> list[np.ndarray]:
        """Accuracy of the weights (seed, evaluation), one array per decay."""
        return [runs.metrics["accuracy"] for runs in self.averages.values()]

    @property
    def averaged(self) -> list[np.ndarray]:
        """The same of the averaged weights."""
        return [runs.metrics["ema/accuracy"] for runs in self.averages.values()]

    def gain(self, machines: tuple[str, ...]) -> np.ndarray:
        """Accuracy of each seed with dropout 0.1 minus without, mean over automata."""
        if not {0.0, 0.1} <= set(self.dropouts):
            raise NotMeasured("dropout rates 0 and 0.1")
        without, little = self.dropouts[0.0], self.dropouts[0.1]
        return np.mean([accuracy(little[name]) - accuracy(without[name]) for name in machines], axis=0)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    averages = [with_average(settings.average, decay) for decay in settings.decays]
    dropouts = [with_dropout(each, rate) for rate in settings.rates for each in settings.dropout]
    patiences = [with_patience(settings.patience, patience) for patience in settings.patiences]
    runs = iter(lab.train([*averages, *dropouts, *patiences], label="stabilisers"))
    return Results(
        averages={decay: next(runs) for decay in settings.decays},
        dropouts={rate: {name: next(runs) for name in GROUPS + MEMORIES} for rate in settings.rates},
        patiences={patience: next(runs) for patience in settings.patiences},
    )


def with_average(experiment: Experiment, decay: float) -> Experiment:
    return replace(experiment, training=replace(experiment.training, ema=decay))


def with_dropout(experiment: Experiment, rate: float) -> Experiment:
    assert isinstance(experiment.model, TransformerConfig)
    model = replace(experiment.model, dropout=rate, attention_dropout=rate, embedding_dropout=rate)
    return replace(experiment, model=model)


def with_patience(experiment: Experiment, patience: int) -> Experiment:
    schedule = ReduceLROnPlateau(patience=patience, factor=0.5, metric="loss")
    return replace(experiment, training=replace(experiment.training, schedule=schedule))


@study.claim(Ratio(below=2 / 3), at="§5.1")
def smoother(results: Results) -> np.ndarray:
    """Averaging the weights removes at least a third of the jitter of the training curve.

    Spread of the changes between evaluations, averaged over plain weights, mean over decays, ratio over seeds.
    """
    rough = [np.diff(curves, axis=1).std(1) for curves in results.plain]
    calm = [np.diff(curves, axis=1).std(1) for curves in results.averaged]
    # Weights that do not move at all have nothing to smooth.
    ratios = [np.where(hard > 0, soft / np.maximum(hard, 1e-9), 1.0) for soft, hard in zip(calm, rough)]
    return np.mean(ratios, axis=0)


@study.claim(Mean(above=-0.01), at="§5.1")
def no_worse(results: Results) -> np.ndarray:
    """Averaging does not cost accuracy.

    Mean accuracy over the second half of training, averaged minus plain weights, mean over seeds and decays; −1 for
    seeds whose plain weights stay below 0.6 there (chance is 0.5).
    """
    late = [(_second_half(before), _second_half(after)) for before, after in zip(results.plain, results.averaged)]
    return np.mean([np.where(before > 0.6, after - before, -1.0) for before, after in late], axis=0)


def _second_half(curves: np.ndarray) -> np.ndarray:
    """Mean of each curve over its second half."""
    halves: np.ndarray = curves[:, curves.shape[1] // 2 :].mean(1)
    return halves


@study.claim(Mean(below=0.1), at="§5.1", paper="insensitive in 0.85 to 0.95", presets=("full",))
def insensitive(results: Results) -> np.ndarray:
    """The decay of the average matters little.

    Largest difference of a seed's final accuracies with two decays (averaged weights), mean over seeds.
    """
    if len(results.averages) < 2:
        raise NotMeasured("a second decay")
    return np.ptp([curves[:, -1] for curves in results.averaged], axis=0)


@study.claim(
    Mean(above=-0.005),
    at="§5.1",
    paper="0.1 is the best rate for dihedral and quaternion groups",
    presets=("full",),
)
def dropout_groups(results: Results) -> np.ndarray:
    """A little dropout does not hurt on groups.

    Accuracy with dropout 0.1 minus without, mean over D₈ and Q₈ and over seeds.
    """
    return results.gain(GROUPS)


@study.claim(Mean(below=0.005), at="§5.1", paper="harmful", presets=("full",))
def dropout_memories(results: Results) -> np.ndarray:
    """Dropout does not help on memories and walks.

    Accuracy with dropout 0.1 minus without, mean over Dyck and Grid₉ and over seeds.
    """
    return results.gain(MEMORIES)


@study.claim(Mean(above=0.0), at="appendix on training", paper="larger patience helps", presets=("full",))
def patience(results: Results) -> np.ndarray:
    """A scheduler that lowers the rate only after long plateaus does better than a hasty one.

    Mean accuracy on C₂ with the largest patience minus that with the smallest.
    """
    if not results.patiences:
        raise NotMeasured("two patiences")
    hasty, patient = (results.patiences[choose(results.patiences)] for choose in (min, max))
    return accuracy(patient) - accuracy(hasty)


@study.table
def stabilisers(results: Results) -> Rows:
    scores = [(f"average, decay {decay}", "C2", each[:, -1]) for decay, each in zip(results.averages, results.averaged)]
    scores += [
        (f"dropout {rate}", name, accuracy(runs))
        for rate, row in results.dropouts.items()
        for name, runs in row.items()
    ]
    scores += [(f"patience {patience}", "C2", accuracy(runs)) for patience, runs in results.patiences.items()]
    return [
        {"setting": name, "automaton": machine, "mean": float(each.mean()), "median": float(np.median(each)),
         "best": float(each.max())}
        for name, machine, each in scores
    ]  # fmt: skip


@study.figure
def curves(results: Results) -> dict[str, Figure]:
    figure, axes = figures.new(columns=1 + bool(results.dropouts), width=5.0, height=3.2)
    decay, runs = next(iter(results.averages.items()))
    for seed, (plain, smooth) in enumerate(zip(results.plain[0], results.averaged[0])):
        colour, first = figures.COLOURS[seed % 8], seed == 0
        thin, thick = ("weights", f"averaged weights, γ = {decay:g}") if first else ("", "")
        axes[0].plot(runs.eval_steps, plain, color=colour, linestyle="-", linewidth=0.6, alpha=0.7, label=thin)
        axes[0].plot(runs.eval_steps, smooth, color=colour, linestyle="-", linewidth=1.8, label=thick)
    axes[0].set(title="C₂", xlabel="training step", ylabel="token accuracy")
    axes[0].legend(loc="lower right")
    if results.dropouts:
        for name in GROUPS + MEMORIES:
            scores = [best(row[name]) for row in results.dropouts.values()]
            axes[1].plot(list(results.dropouts), scores, marker="o", label=name)
        axes[1].set(title="best run", xlabel="dropout", ylabel="token accuracy")
        axes[1].legend()
    return {"stabilisers": figure}
