"""The weights of a one-layer transformer become rank one while it learns a binary chain.

The matrices of a one-layer transformer on a binary chain start at full rank and end at rank one. This is the
observation behind the reduction to three numbers (`markov/flow-portrait`): the two token vectors span one direction
that matters, and the feed-forward maps align with it.

**Set-up.** As in `markov/weight-tying`: one layer, one head, width 8, feed-forward 32, AdamW, 400 steps, tied weights,
chain (p, q) = (0.2, 0.3). At 20 evaluations the singular values of the value map W_V and of the feed-forward maps W₁
and W₂ are kept. The share σ₁²/Σσ² is 1 for a rank-one matrix; the effective rank is exp of the entropy of σ/Σσ (Roy &
Vetterli 2007).

**In the figure.** The singular values of one seed over training, one line each: one leaves the bundle. Right: the
leading share over all seeds.

**What was learnt.** With the settings of the public code only the feed-forward maps become rank one; the value map,
which the solution does not need, stays near its initialisation.
"""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot
from sandlab.lenses.spectra import effective_rank, singular_values, top_share
from sandlab.studies.claims import Mean
from sandlab.studies.markov._shared import LOCAL_TO_GLOBAL, chain_model, chain_training
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.markov.chain import MarkovChain

VALUES, FIRST, SECOND = (f"layers.0.{name}.weight" for name in ("attention.value", "mlp.up_proj", "mlp.down_proj"))
MATRICES = {VALUES: "values W_V", FIRST: "feed-forward W₁", SECOND: "feed-forward W₂"}


def weight_spectra(now: Snapshot) -> dict[str, Tensor]:
    """Singular values of each of MATRICES, largest first."""
    return singular_values(now.model, *MATRICES)


def experiment(length: int, batch_size: int, evals: int, seeds: int) -> Experiment:
    """One chain that is learnt with tied weights."""
    world, training = MarkovChain.binary(0.2, 0.3, length), chain_training(400, batch_size, evals=evals)
    return Experiment(world, chain_model(length), training, seeds, probes=(weight_spectra,))


QUICK = experiment(64, batch_size=64, evals=20, seeds=6)
study = Study(
    "markov/low-rank",
    title="Learning a chain drives the weights to rank one",
    source=LOCAL_TO_GLOBAL,
    quick=QUICK,
    full=experiment(512, batch_size=16, evals=40, seeds=16),
    null=untrained(QUICK),
)


@study.collect
def collect(settings: Experiment, lab: Lab) -> Runs:
    return lab.train(settings)


def share(runs: Runs, matrix: str) -> np.ndarray:
    """σ₁²/Σσ² of a matrix (seed, evaluation)."""
    return top_share(torch.from_numpy(runs.metrics[matrix])).numpy()


@study.claim(Mean(above=0.9))
def feed_forward(runs: Runs) -> np.ndarray:
    """At the end of training the first feed-forward matrix is nearly rank one.

    Share of the energy of W₁ in its largest singular value, σ₁²/Σσ².
    """
    return share(runs, FIRST)[:, -1]


@study.claim(Mean(above=0.9))
def second_map(runs: Runs) -> np.ndarray:
    """So is the second feed-forward matrix.

    Share of the energy of W₂ in its largest singular value.
    """
    return share(runs, SECOND)[:, -1]


@study.claim(Mean(above=0.4))
def from_full_rank(runs: Runs) -> np.ndarray:
    """Training makes them so: the matrices do not begin that way.

    Share of the energy of W₁ in its largest singular value, at the end minus before training.
    """
    return share(runs, FIRST)[:, -1] - share(runs, FIRST)[:, 0]


@study.table
def ranks(runs: Runs) -> Rows:
    found = []
    for name, label in MATRICES.items():
        shares, effective = share(runs, name).mean(0), effective_rank(torch.from_numpy(runs.metrics[name])).mean(0)
        row = {"leading share, start": shares[0], "leading share, end": shares[-1]}
        row |= {"effective rank, start": effective[0], "effective rank, end": effective[-1]}
        found.append({"matrix": label, **{column: float(value) for column, value in row.items()}})
    return found


@study.figure
def spectra(runs: Runs) -> Figure:
    figure, axes = figures.new(4, width=3.7, height=3.2, title="The feed-forward maps become rank one")
    for axis, (name, label) in zip(axes, MATRICES.items()):
        for rank, line in enumerate(runs.metrics[name][0].T):
            colour, width = (figures.COLOURS[1], 1.8) if rank == 0 else (figures.COLOURS[0], 0.9)
            axis.plot(runs.eval_steps, line, "-", color=colour, linewidth=width)
        axis.set(title=label, xlabel="step", ylabel="singular value" if name == VALUES else "", ylim=(0, None))
        figures.band(axes[3], runs.eval_steps, share(runs, name), label=label)
    axes[3].axhline(0.9, color="#555555", linestyle=":", linewidth=1)
    axes[3].set(title="leading share σ₁²/Σσ²", xlabel="step", ylim=(0, 1.02))
    axes[3].legend(fontsize=8, loc="lower right")
    return figure
