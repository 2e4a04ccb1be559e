"""Networks learn the kernel of Ornstein–Uhlenbeck processes in more dimensions, with an error that grows with d.

A contrastive MLP with two classes on pairs half a unit apart, negatives from the stationary law, A = diag(1 … 2)
(anisotropic), the squared loss and AdamW. The average KL is measured on fresh draws. Baselines: the stationary law
itself and one Euler step, both in closed form. Full has the specification's networks, with 4000 steps of 16 384 pairs
(`training.steps`, `training.batch_size`) instead of 20 000 of 65 536, factors of five and of four.

The null does not train the networks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.diffusions.networks import ContrastiveSquares, network_logit
from sandlab.learning.experiment import Experiment, Snapshot, Training
from sandlab.lenses.diffusions.kernels import euler_kl, ou_kl, sampled_kl
from sandlab.models.mlp import MLPConfig
from sandlab.studies.claims import Mean, Order
from sandlab.studies.diffusions import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.diffusions._device import SteadyOU
from sandlab.worlds.diffusions.contrast import StationaryContrast
from sandlab.worlds.diffusions.pairs import ContrastivePairs
from sandlab.worlds.diffusions.potentials import Quadratic

ETA = 0.5
TRAINING = Training(
    steps=3000, batch_size=512, lr=1e-3, optimizer="adamw", schedule="cosine", objective=ContrastiveSquares(), evals=2
)


@dataclass(frozen=True)
class Settings:
    """Dimensions, hidden layers, training and seeds; draws: examples on which the KL is measured."""

    dimensions: tuple[int, ...] = (1, 2, 4)
    hidden: tuple[int, ...] = (64, 64)
    training: Training = field(default=TRAINING)
    seeds: int = 4


@dataclass(frozen=True)
class Results:
    """KL of the networks (dimension, seed), and of the baselines (dimension)."""

    dimensions: tuple[int, ...]
    kl: np.ndarray
    stationary: np.ndarray
    euler: np.ndarray


QUICK = Settings()
study = Study(
    "diffusions/ou-dimensions",
    title="Networks learn the kernel in more dimensions, at a price that grows with d",
    source=shared.SOURCE,
    at="section 2.1",
    quick=QUICK,
    full=Settings((1, 2, 4, 8, 16), (256,) * 3, replace(TRAINING, steps=4000, batch_size=16_384, precision="tf32")),
    null=replace(QUICK, training=replace(TRAINING, steps=1, lr=0.0)),
)


def rates(d: int) -> tuple[float, ...]:
    """Diagonal of A, from 1 to 2."""
    return tuple(float(each) for each in np.linspace(1, 2, d)) if d > 1 else (1.0,)


def law(d: int) -> ContrastivePairs:
    process = SteadyOU(Quadratic(tuple(map(tuple, np.diag(rates(d)).tolist()))))
    return ContrastivePairs(process, StationaryContrast(process), ETA)


def network_kl(snapshot: Snapshot) -> dict[str, np.ndarray]:
    """Average KL of every member's kernel, from 100 000 draws."""
    assert isinstance(snapshot.world, ContrastivePairs)
    models, draws = list(snapshot.model.members()), np.random.default_rng
    return {"kl": np.array([sampled_kl(snapshot.world, network_logit(each), draws(0), 100_000) for each in models])}


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    runs = lab.train(
        [
            Experiment(
                law(d),
                MLPConfig(features=2 * d, hidden=settings.hidden, outputs=2, activation="tanh"),
                settings.training,
                seeds=settings.seeds,
                final=(network_kl,),
            )
            for d in settings.dimensions
        ],
        label="networks",
    )
    return Results(
        settings.dimensions,
        np.array([run.final["kl"] for run in runs]),
        np.array([sum(ou_kl(0.0, 1 / rho, ETA, rho) for rho in rates(d)) for d in settings.dimensions]),
        np.array([sum(euler_kl(ETA, rho) for rho in rates(d)) for d in settings.dimensions]),
    )


@study.claim(Mean(below=0.5))
def far_below_one_euler_step(results: Results) -> np.ndarray:
    """In every dimension the network's kernel is twice as near as one Euler step.

    Largest ratio of KL to that of the Euler kernel over dimensions, by seed.
    """
    return (results.kl / results.euler[:, None]).max(0)


@study.claim(Mean(below=0.5))
def far_below_the_stationary_law(results: Results) -> np.ndarray:
    """It is also twice as near as the stationary law.

    Largest ratio of KL to that of the stationary law over dimensions, by seed.
    """
    return (results.kl / results.stationary[:, None]).max(0)


@study.claim(Order(above=0.0), at="Theorem 3")
def harder_in_more_dimensions(results: Results) -> np.ndarray:
    """The error grows with the dimension.

    Logarithm of the KL by dimension.
    """
    return np.log(np.maximum(results.kl, 1e-9))


@study.figure
def error(results: Results) -> Figure:
    figure, (axis,) = figures.new(title="The error of the learnt kernel grows with the dimension")
    figures.band(axis, results.dimensions, results.kl.T, "network")
    axis.plot(results.dimensions, results.stationary, ":", label="stationary law")
    axis.plot(results.dimensions, results.euler, "--", label="one Euler step")
    axis.set(xscale="log", yscale="log", xlabel="dimension d", ylabel="average KL (nats)")
    axis.legend()
    return figure
