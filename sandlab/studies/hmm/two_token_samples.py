"""Triples of tokens give the parameters at the usual rate: tables, tensors, maximum likelihood.

n triples of `hmm-canon` become a table of conditional frequencies, Jennrich's algorithm its factors, and these (O,
T). The error falls like n^(−1/2) for each of the three tasks. Counts are streamed: memory does not depend on n.

The null shuffles the three tokens of every triple independently (their joint becomes a product), which leaves nothing
to decompose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.hmm.recovery import parameter_error, recover_hmm
from sandlab.learning.hmm.samples import conditional_table, expectation_maximisation, joint_moment_hmm
from sandlab.random import rng
from sandlab.studies.claims import Mean, Slope
from sandlab.studies.hmm import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.hmm.instances import random_hmm
from sandlab.worlds.hmm.models import HMM


@dataclass(frozen=True)
class Settings:
    """Sample sizes and seeds; d, k of a random model when they are not 4 and 3; em: iterations of the reference."""

    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    seeds: int = 8
    d: int = 4
    k: int = 3
    em: int = 200
    shuffled: bool = False


@dataclass(frozen=True)
class Draw:
    settings: Settings
    size: int
    seed: int


@dataclass(frozen=True)
class Results:
    """Frobenius errors of (O, T): axes size, seed, method (three tasks, joint moments, EM), parameter."""

    sizes: tuple[int, ...]
    errors: np.ndarray


QUICK = Settings()
METHODS = (*shared.TWO, "joint moments", "maximum likelihood")
study = Study(
    "hmm/two-token-samples",
    title="Sampled triples recover an HMM at the rate n^(−1/2)",
    source=shared.SOURCE,
    at="Theorem 7",
    quick=QUICK,
    full=Settings(sizes=(10**6, 10**7, 10**8, 10**9), d=64, k=16, em=100),
    null=replace(QUICK, shuffled=True),
)


def estimate(job: Draw) -> np.ndarray:
    """Errors of every method on one sample."""
    settings = job.settings
    hmm = HMM() if (settings.d, settings.k) == (4, 3) else random_hmm(settings.d, settings.k, np.random.default_rng(0))
    counts = hmm.string_counts(job.size, rng=rng(job.seed, "triples", job.size))
    if settings.shuffled:
        one = hmm.O.mean(1)
        counts = (
            np.random.default_rng(job.seed)
            .multinomial(job.size, np.einsum("a,b,c->abc", one, one, one).ravel())
            .reshape(counts.shape)
        )
    found = [recover_hmm(conditional_table(counts, task), task, settings.k, clean=True) for task in shared.TWO]
    moments = joint_moment_hmm(counts, settings.k)
    em = expectation_maximisation(counts, settings.k, np.random.default_rng(job.seed), settings.em).model
    errors = [parameter_error(hmm, *each) for each in (*found, (moments.O, moments.T), (em.O, em.T))]
    return np.array([[each.means_frobenius, each.transitions_frobenius] for each in errors])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [Draw(settings, size, seed) for size in settings.sizes for seed in range(settings.seeds)]
    found = np.array(lab.map(estimate, jobs))
    return Results(settings.sizes, found.reshape(len(settings.sizes), settings.seeds, len(METHODS), 2))


def points(results: Results, method: int) -> np.ndarray:
    """Rows (log n, log of the seeds' error of O)."""
    logs = np.log(results.errors[:, :, method, 0])
    sizes = np.repeat(np.log(results.sizes), logs.shape[1])
    return np.stack([sizes, logs.ravel()], 1)


@study.claim(Slope(between=(-0.6, -0.4)))
def slope_first(results: Results) -> np.ndarray:
    """The error of O from 2⊗3|1 falls like the square root of the number of triples.

    Slope of log error against log n, one point per seed and size.
    """
    return points(results, 0)


@study.claim(Slope(between=(-0.6, -0.4)))
def slope_middle(results: Results) -> np.ndarray:
    """So does that from 1⊗3|2.

    Slope of log error against log n, one point per seed and size.
    """
    return points(results, 1)


@study.claim(Slope(between=(-0.6, -0.4)))
def slope_last(results: Results) -> np.ndarray:
    """So does that from 1⊗2|3.

    Slope of log error against log n, one point per seed and size.
    """
    return points(results, 2)


@study.claim(Mean(below=0.03), presets=("quick",))
def error_at_a_million(results: Results) -> np.ndarray:
    """A million triples suffice for errors below 0.03.

    Largest Frobenius error of O and T over the three tasks at the largest size.
    """
    return results.errors[-1, :, :3].max((1, 2))


@study.figure
def errors(results: Results) -> Figure:
    figure, axes = figures.new(2, title="Errors fall like n^(−1/2)")
    for axis, column, name in zip(axes, (0, 1), ("emissions O", "transitions T")):
        for method, label in enumerate(METHODS):
            figures.band(axis, results.sizes, results.errors[:, :, method, column].T, label)
        axis.set(xscale="log", yscale="log", xlabel="number of triples", ylabel=f"Frobenius error of {name}")
    axes[0].legend(fontsize=8)
    return figure
