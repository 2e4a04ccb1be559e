"""A transformer that reads examples (x, y) predicts like ridge regression, the Bayes-optimal rule.

Each sequence has a weight vector w of its own; y = ⟨w, x⟩ + noise. Predicting y from the examples before it is a
problem whose best answer is known in closed form: ridge regression with penalty dσ²/τ². A trained transformer comes
close to it, below what one step of gradient descent reaches.

**Set-up.** Tokens x and y alternate. Quick: d = 3, eight examples, noise 0.3, three layers of width 48, 2500 batches
of 64. Full: d = 8, twenty examples, six layers of width 128, 16 000 batches of 64; the source has d = 20, forty
examples, twelve layers of width 256 and 500 000 batches (factors 2.5, 2, 2, 2 and 31).

**In the figure.** Mean squared error by the number of examples seen, with those of ridge regression (the oracle), least
squares, one step of gradient descent from zero with its best rate, and predicting zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.lenses.predictions import evaluating
from sandlab.models.expressivity.real_inputs import RealTransformerConfig
from sandlab.random import rng
from sandlab.studies.claims import Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.expressivity.regression import InContextRegression


def errors_by_examples(now: Snapshot) -> dict[str, Tensor]:
    """Mean squared error of each y by the number of examples before it: "errors" (member, examples)."""
    assert isinstance(now.world, InContextRegression)
    with evaluating(now.model), torch.no_grad():
        predicted = now.model(now.batch.inputs)
    return {"errors": now.world.errors(predicted, now.batch)}


@dataclass(frozen=True)
class Settings:
    experiment: Experiment


def settings(world: InContextRegression, training: Training, *, layers: int, width: int, seeds: int) -> Settings:
    model = RealTransformerConfig(
        vocab=1, length=world.length, layers=layers, heads=4, width=width, outputs=1, features=world.features,
        init_std=None,
    )  # fmt: skip
    return Settings(Experiment(world, model, training, seeds, probes=(errors_by_examples,)))


QUICK = settings(
    InContextRegression(dim=3, pairs=8, noise=0.3),
    Training(
        steps=2500, batch_size=64, lr=2e-3, schedule="cosine", warmup=100, objective="squared-error", evals=10,
        eval_examples=4096,
    ),
    layers=3, width=48, seeds=3,
)  # fmt: skip
study = Study(
    "expressivity/regression",
    title="In context, a transformer regresses nearly as well as Bayes",
    source="Garg et al. 2022, What can transformers learn in-context? A case study of simple function classes",
    quick=QUICK,
    full=settings(
        InContextRegression(dim=8, pairs=20, noise=0.3),
        Training(
            steps=16_000, batch_size=64, lr=1e-3, schedule="cosine", warmup=600, objective="squared-error", evals=4,
            eval_examples=4096, precision="tf32",
        ),
        layers=6, width=128, seeds=5,
    ),
    null=untrained(QUICK),
)  # fmt: skip


@dataclass(frozen=True)
class Results:
    """Runs, and the errors of the oracle and the baselines on the same held-out sequences."""

    runs: Runs
    known: dict[str, np.ndarray]

    @property
    def final(self) -> np.ndarray:
        """(seed, examples)"""
        return self.runs.metrics["errors"][:, -1]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    world = settings.experiment.world
    assert isinstance(world, InContextRegression)
    batch = world.sample(settings.experiment.training.eval_examples, rng=rng(1, "held out", device=lab.device))
    rules = {"ridge (Bayes)": world.oracle, **world.baselines()}
    known = {name: world.errors(rule(batch), batch).cpu().numpy() for name, rule in rules.items()}
    return Results(lab.train(settings.experiment, label="regression"), known)


@study.claim(Mean(below=0.2), paper="nearly optimal")
def near_bayes(results: Results) -> np.ndarray:
    """After all examples but one the error is close to the Bayes-optimal one.

    Excess error over ridge regression at the last question, as a share of what predicting zero exceeds it by.
    """
    best, zero = results.known["ridge (Bayes)"][-1], results.known["zero"][-1]
    return (results.final[:, -1] - best) / (zero - best)


@study.claim(Mean(below=0.0))
def better_than_one_step(results: Results) -> np.ndarray:
    """It is better than one step of gradient descent.

    Mean error over the second half of the questions minus that of one step from zero with its best rate.
    """
    half = results.final.shape[1] // 2
    return results.final[:, half:].mean(1) - results.known["one step"][half:].mean()


@study.table
def table(results: Results) -> dict[str, Rows]:
    rows = [
        {"examples seen": seen, "transformer": float(results.final[:, seen].mean())}
        | {name: float(values[seen]) for name, values in results.known.items()}
        for seen in range(results.final.shape[1])
    ]
    return {"mean squared errors": rows}


@study.figure
def errors(results: Results) -> Figure:
    figure, (axis,) = figures.new(width=5.6, height=3.6, title="The transformer follows ridge regression")
    seen = np.arange(results.final.shape[1])
    figures.band(axis, seen, results.final, label="transformer", marker="o")
    for name, values in results.known.items():
        axis.plot(seen, np.minimum(values, 2 * results.known["zero"].max()), label=name, linewidth=1.2)
    axis.set(xlabel="examples seen", ylabel="mean squared error", ylim=(0, 1.3 * float(results.known["zero"].max())))
    axis.legend()
    return figure
