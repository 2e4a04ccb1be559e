"""The generalisation gap of a trained network falls with the length of the path, too.

`diffusions/path-length` takes the largest gap over a fixed class of classifiers. Here a network is fitted: an MLP tells
pairs η apart on one stationary path of an OU process from pairs with a fresh draw of π, by the squared loss, for as
many steps on a short path as on a long one. Negatives are fresh in every batch, so that what is learnt by heart are the
pairs of the path, and the gap is ½(E_π,p*(h − 1)² − mean of (h − 1)² over these pairs). The expectation is computed by
Gauss–Hermite quadrature. Intervals of 0.1 and of 1: ten times as many pairs from the same path help less than ten times
as many independent pairs would.

The bounds are ours and were written before the first run. The null has independent pairs, whose number does not depend
on T.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.diffusions.networks import ContrastiveSquares, network_logit
from sandlab.learning.experiment import Experiment, Snapshot, Training
from sandlab.models.mlp import MLPConfig
from sandlab.studies.claims import Ratio, Slope
from sandlab.studies.diffusions import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.diffusions.contrast import StationaryContrast
from sandlab.worlds.diffusions.pairs import ContrastivePairs, StoredPairs
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck

ALONE = 40
"""Independent pairs on the null at η = 1; ten times as many at η = 0.1."""


@dataclass(frozen=True)
class Settings:
    """Lengths of the path, intervals, the network, its training, seeds; independent: pairs of no path (the null)."""

    times: tuple[float, ...] = (50.0, 200.0, 800.0, 3200.0)
    etas: tuple[float, ...] = (0.1, 1.0)
    hidden: tuple[int, ...] = (32, 32)
    training: Training = field(
        default_factory=lambda: Training(
            steps=600, batch_size=128, lr=3e-3, optimizer="adam", evals=2, objective=ContrastiveSquares()
        )
    )
    seeds: int = 8
    independent: bool = False


@dataclass(frozen=True)
class Results:
    """Population risk minus empirical risk, and population risk, by (η, T, seed)."""

    times: tuple[float, ...]
    etas: tuple[float, ...]
    gap: np.ndarray
    risk: np.ndarray


QUICK = Settings()
study = Study(
    "diffusions/network-gap",
    title="A network fitted to one path generalises the better the longer the path is",
    source=shared.SOURCE,
    at="Theorem 1",
    quick=QUICK,
    full=replace(
        QUICK,
        times=(50.0, 800.0, 12_800.0, 1e5),
        hidden=(256,) * 3,
        training=replace(QUICK.training, steps=5000, batch_size=4096, lr=1e-3),
        seeds=20,
    ),
    null=replace(QUICK, independent=True),
)


def risk_of_positives(snapshot: Snapshot) -> dict[str, np.ndarray]:
    """½E(h − 1)² of every member: under the process ("population"), and over the stored pairs ("empirical")."""
    world = snapshot.world
    assert isinstance(world, StoredPairs)
    x, later, mass = positives(world.pairs.eta)
    stored = world.positives
    found: dict[str, list[float]] = {"population": [], "empirical": []}
    for member in snapshot.model.members():
        logit = network_logit(member)
        found["population"].append(0.5 * float(mass @ missed(logit(x, later))))
        found["empirical"].append(0.5 * float(missed(logit(stored[:, 0], stored[:, 1])).mean()))
    return {name: np.array(values) for name, values in found.items()}


def missed(logit: np.ndarray) -> np.ndarray:
    """(h − 1)² of a logit."""
    return 1 / (1 + np.exp(np.clip(logit, -50, 50))) ** 2


def positives(eta: float, points: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, x′ and masses of a Gauss–Hermite rule for x ~ π, x′ ~ p*(x, ·)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    z, noise = (each.reshape(-1, 1) for each in np.meshgrid(nodes, nodes, indexing="ij"))
    decay = np.exp(-eta)
    mass = np.outer(weights, weights).ravel() / weights.sum() ** 2
    return z, decay * z + np.sqrt(1 - decay**2) * noise, mass


def experiment(settings: Settings, eta: float, time: float, seed: int) -> Experiment:
    law = ContrastivePairs(OrnsteinUhlenbeck(), StationaryContrast(), eta)
    chains, blocks = (round(ALONE / eta), 1) if settings.independent else (1, max(1, int(time / eta / 2)))
    model = MLPConfig(features=2, hidden=settings.hidden, outputs=2, activation="tanh")
    pairs = StoredPairs(law, chains, blocks, seed)
    return Experiment(pairs, model, settings.training, seeds=(seed,), final=(risk_of_positives,))


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    cells = [(eta, time, seed) for eta in settings.etas for time in settings.times for seed in range(settings.seeds)]
    runs = lab.train([experiment(settings, *cell) for cell in cells], label="networks")
    shape = len(settings.etas), len(settings.times), settings.seeds
    population, empirical = (
        np.array([run.final[name][0] for run in runs]).reshape(shape) for name in ("population", "empirical")
    )
    return Results(settings.times, settings.etas, population - empirical, population)


@study.claim(Slope(below=-0.2), at="Theorem 1")
def longer_paths_generalise(results: Results) -> np.ndarray:
    """The gap of a fitted network falls with the length of the path.

    Slope of the logarithm of the mean gap of four seeds (at least 1e-6) against log T, one point per length and group
    of seeds, η = 0.1.
    """
    gap = results.gap[0]
    groups = np.stack([part.mean(-1) for part in np.array_split(gap, max(gap.shape[-1] // 4, 1), axis=-1)], -1)
    times = np.broadcast_to(np.log(results.times)[:, None], groups.shape)
    return np.stack([times.ravel(), np.log(np.maximum(groups, 1e-6)).ravel()], 1)


def gap_ratio(gaps: np.ndarray) -> float:
    """Mean gap over seeds at the longer interval divided by that at the shorter one, averaged over T."""
    means = np.maximum(gaps.mean(-1), 1e-6)
    return float((means[1] / means[0]).mean())


@study.claim(Ratio(below=10.0), at="Theorem 1", paper="depends on T alone")
def more_pairs_help_less(results: Results) -> np.ndarray:
    """Ten times as many pairs from the same path do not make the gap ten times smaller.

    Mean gap at η = 1 divided by that at η = 0.1, averaged over T; jackknife over seeds.
    """
    return shared.pseudo_ratios(gap_ratio, results.gap)


@study.table
def gaps(results: Results) -> Rows:
    return [
        {"η": eta, "T": time, "gap": float(gap.mean()), "population risk of positives": float(risk.mean())}
        for eta, rows, risks in zip(results.etas, results.gap, results.risk)
        for time, gap, risk in zip(results.times, rows, risks)
    ]


@study.figure
def curves(results: Results) -> Figure:
    figure, (axis,) = figures.new(title="The longer the path, the smaller the gap of a fitted network")
    for eta, rows in zip(results.etas, results.gap):
        figures.band(axis, results.times, np.maximum(rows.T, 1e-5), f"η = {eta:g}")
    axis.set(xscale="log", yscale="log", xlabel="length of the path T", ylabel="population minus empirical risk")
    axis.legend()
    return figure
