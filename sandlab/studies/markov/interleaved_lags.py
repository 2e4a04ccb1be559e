"""Interleaved chains: a transformer finds out in context at which lag a sequence follows its kernel.

Every sequence follows the same kernel, x_t ~ P(·|x_{t−κ}), with its own lag κ that has to be found. The Bayes predictor
weighs the lags by how well each explains what was seen, posterior ∝ Π_t P(x_t|x_{t−κ}), and predicts with the winner.
Quick: 3 states, lags 1 to 3, 32 tokens, three layers with one head each; full: 5 states and 64 tokens. A prediction
counts as "lag found" when, of the distributions that the lags predict, that of the true lag is nearest to it.

**In the figure.** Left: losses against those of the unigram, of mixing all lags alike, and of the Bayes predictor.
Right: how often the right lag is found, by position, for the models and for the Bayes predictor.
"""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.lenses.markov.chains import lag_found
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean
from sandlab.studies.markov._shared import KnownLosses, cosine, gap_left
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Study
from sandlab.worlds.markov.interleaved import InterleavedChains

LAGS = (1, 2, 3)
LEVELS = {"unigram": "unigram", "any lag": "lags mixed equally", "oracle": "Bayes"}


def lags_found(now: Snapshot) -> dict[str, Tensor]:
    """How often the lag is found, by position: of the "models", and of the "Bayes" predictor."""
    assert isinstance(now.world, InterleavedChains)
    with evaluating(now.model), torch.no_grad():
        predicted = log_predictions(now.model, now.batch).double()
    models = lag_found(now.world, now.batch, predicted)
    return {"models": models, "Bayes": lag_found(now.world, now.batch, now.world.oracle(now.batch)).expand_as(models)}


def experiment(states: int, length: int, width: int, training: Training, seeds: int) -> Experiment:
    """One kernel, a lag for every sequence; three-layer transformers with one head per layer."""
    world = InterleavedChains.random(states, seed=1, concentration=0.3, lags=LAGS, length=length)
    model = TransformerConfig(vocab=states, length=length, layers=3, heads=1, width=width)
    return Experiment(world, model, training, seeds, final=(lags_found, KnownLosses(tuple(LEVELS))))


QUICK = experiment(3, length=32, width=32, training=cosine(1500, 32, 5e-3, evals=30, eval_examples=1024), seeds=3)
study = Study(
    "markov/interleaved-lags",
    title="Which lag? Transformers find the causal structure of a sequence in context",
    source="D'Angelo, Croce & Flammarion 2025, Selective induction heads: how transformers select causal structures in "
    "context",
    quick=QUICK,
    full=experiment(5, length=64, width=64, training=cosine(10000, 128, 2e-3, evals=30, eval_examples=1024), seeds=16),
    null=untrained(QUICK),
)


@study.collect
def collect(settings: Experiment, lab: Lab) -> Runs:
    return lab.train(settings)


@study.claim(Mean(above=0.8), id="lag-found")
def at_the_end(runs: Runs) -> np.ndarray:
    """At the end of a sequence the model predicts with the right lag.

    Share of sequences whose last prediction is nearest to the true lag's.
    """
    return runs.final["models"][:, -1]


@study.claim(Mean(above=-0.1))
def near_bayes(runs: Runs) -> np.ndarray:
    """It finds the lag nearly as often as the Bayes predictor.

    Share at the last position, model minus Bayes.
    """
    return runs.final["models"][:, -1] - runs.final["Bayes"][:, -1]


@study.claim(Mean(above=0.05))
def improves(runs: Runs) -> np.ndarray:
    """The longer the sequence, the surer: the share rises with the position.

    Share at the last position minus share after the largest lag's first use.
    """
    return runs.final["models"][:, -1] - runs.final["models"][:, max(LAGS)]


@study.claim(Mean(below=0.5))
def beats_mixture(runs: Runs) -> np.ndarray:
    """The model does better than mixing the lags without finding out which one it is.

    (loss − optimum)/(loss of the equal mixture − optimum).
    """
    return gap_left(runs, "any lag")


@study.figure
def lags(runs: Runs) -> Figure:
    title = "The lag is found in context, the more surely the longer"
    figure, axes = figures.new(2, width=5.0, height=3.5, title=title)
    models = runs.final["models"]
    positions = np.arange(1, models.shape[1] + 1)
    figures.band(axes[0], runs.eval_steps, runs.metrics["loss"], label="three layers")
    figures.levels(axes[0], {label: float(runs.final[name][0]) for name, label in LEVELS.items()})
    axes[0].set(xlabel="step", ylabel="loss (nats)", title="held-out loss")
    figures.band(axes[1], positions, models, label="transformer")
    axes[1].plot(positions, runs.final["Bayes"][0], "--", color=figures.COLOURS[1], label="Bayes predictor")
    axes[1].set(xlabel="tokens seen", ylabel="share", ylim=(0, 1.02), title="prediction nearest to the true lag's")
    axes[1].legend(loc="lower right")
    return figure
