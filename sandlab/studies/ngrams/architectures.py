"""The same stages in ordinary attention-only transformers.

Three states, length 32, Dirichlet(1) rows, width S + T = 35, two heads then one, Adam with rate 0.005.

The loss starts at log 3 (zero readout), pauses at the unigram, then at the bigram, then drops to the trigram; the
right panel shows the attention mass of the first-layer heads on each lag.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.lenses.ngrams.probes import LagMass
from sandlab.models.base import Config
from sandlab.models.ngrams.presets import cat_tf, tf_additive, tf_additive_mlp
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.ngrams._shared import SOURCE, config_of, estimator_losses, simplified
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Study
from sandlab.worlds.ngrams.in_context import InContextNgrams

ONE_HOT, LEARNED = "additive one-hot", "additive learned"
MODELS: dict[str, Callable[[InContextNgrams], Config]] = {
    ONE_HOT: lambda world: config_of(tf_additive, world),
    LEARNED: lambda world: config_of(tf_additive, world, embedding="learned"),
    "disentangled": lambda world: config_of(cat_tf, world),
    "simplified": lambda world: simplified(world, heads=world.order),
    "additive with feed-forward": lambda world: config_of(tf_additive_mlp, world),
}


@dataclass(frozen=True)
class Settings:
    """The experiment with one-hot embeddings, and the names of the architectures that are trained in the same way."""

    experiment: Experiment
    models: tuple[str, ...] = (ONE_HOT,)


WORLD = InContextNgrams(states=3, order=2, length=32, concentration=1.0)
QUICK = Experiment(
    world=WORLD,
    model=MODELS[ONE_HOT](WORLD),
    training=Training(steps=900, batch_size=128, lr=0.005, weight_decay=1e-4, evals=60, eval_examples=4096),
    seeds=3,
    probes=(LagMass(WORLD.order),),
)
FULL = replace(QUICK, seeds=16, training=replace(QUICK.training, steps=4096, evals=128, eval_examples=16384))
study = Study(
    "ngrams/architectures",
    title="An ordinary attention-only transformer learns the trigram, with a head on each lag",
    source=SOURCE,
    at="Figure 4",
    quick=Settings(QUICK),
    full=Settings(FULL, tuple(MODELS)),
    null=untrained(Settings(QUICK)),
)


@dataclass(frozen=True)
class Results:
    """Runs by the name of the architecture, and the losses of the estimators."""

    runs: dict[str, Runs]
    levels: dict[str, float]

    @property
    def one_hot(self) -> Runs:
        return self.runs[ONE_HOT]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    world = settings.experiment.world
    assert isinstance(world, InContextNgrams)
    experiments = [replace(settings.experiment, model=MODELS[name](world)) for name in settings.models]
    runs = lab.train(experiments, label="architectures")
    return Results(dict(zip(settings.models, runs)), estimator_losses(world))


@study.claim(Mean(below=0.99), at="Figure 4", paper="0.970")
def learns_trigram(results: Results) -> np.ndarray:
    """An attention-only transformer with residual addition learns the in-context trigram.

    Final test loss, one-hot embeddings (Bayes 0.953).
    """
    return results.one_hot.metrics["loss"][:, -1]


@study.claim(Mean(above=0.6), at="Figure 4", paper="own runs: 0.92 and 0.90")
def two_heads(results: Results) -> np.ndarray:
    """Its two first-layer heads look one and two tokens back.

    Smaller of the largest masses on lag 1 and lag 2 over heads, at the end.
    """
    return results.one_hot.metrics["mass"][:, -1, :, 1:3].max(1).min(-1)


@study.claim(Mean(above=0.7), at="Figure 4", paper="own runs: 0.92 and 0.90")
def two_heads_sharp(results: Results) -> np.ndarray:
    """Its two first-layer heads look at little else.

    Smaller of the largest masses on lag 1 and lag 2 over heads, at the end.
    """
    return two_heads(results)


@study.claim(Mean(below=0.0), at="Figure 4", presets=("full",))
def one_hot_faster(results: Results) -> np.ndarray:
    """One-hot embeddings are not slower than learned ones.

    Step at which the loss falls below 1.0, one-hot minus learned.
    """
    if LEARNED not in results.runs:
        raise NotMeasured(f"a run of {LEARNED!r}")
    return first_step_below(results.one_hot) - first_step_below(results.runs[LEARNED])


def first_step_below(runs: Runs, level: float = 1.0) -> np.ndarray:
    """First evaluated step of each seed with a loss below the level; the last one if there is none."""
    below = runs.metrics["loss"] < level
    first = np.where(below.any(1), below.argmax(1), below.shape[1] - 1)
    return runs.eval_steps[first]


@study.figure
def loss(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, width=4.6, height=3.2)
    for name, runs in results.runs.items():
        figures.band(axes[0], runs.eval_steps, runs.metrics["loss"], label=name)
    figures.levels(axes[0], results.levels)
    axes[0].set(title="test loss", xlabel="training step", ylabel="nats")
    axes[0].legend(loc="upper right")
    for lag in (1, 2):
        best = results.one_hot.metrics["mass"][:, :, :, lag].max(2)
        figures.band(axes[1], results.one_hot.eval_steps, best, label=f"lag {lag}")
    axes[1].set(title="one-hot: best head on each lag", xlabel="training step", ylabel="attention mass", ylim=(0, 1))
    axes[1].legend()
    return figure
