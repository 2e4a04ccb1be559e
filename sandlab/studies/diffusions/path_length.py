"""What counts is how long the path is: the error of the kernel falls like 1/T.

(a) OU, η = ½, q = N(0, 1.5²): average KL against the length T. (b) The largest gap between empirical and population
risk over 200 fixed classifiers, for several T and η: at small η more pairs from the same path do not help.

The null shuffles the path for the kernel (a); its gap (b) uses independent pairs, for which the gap keeps falling
with the number of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit

from sandlab import figures
from sandlab.learning.diffusions.classifiers import EvenLogit, fit_logit, read_ou
from sandlab.lenses.diffusions.kernels import ou_kl
from sandlab.lenses.diffusions.mixing import blocking_bound, generalization_gap, massart_cap
from sandlab.studies.claims import Mean, Slope
from sandlab.studies.diffusions import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.diffusions.contrast import GaussianContrast, StationaryContrast
from sandlab.worlds.diffusions.pairs import make_pairs
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck


@dataclass(frozen=True)
class Settings:
    """Lengths and seeds of both parts; independent: no dependence between observations (the null)."""

    times: tuple[float, ...] = (625.0, 2500.0, 10_000.0, 40_000.0)
    seeds: int = 12
    gap_times: tuple[float, ...] = (50.0, 200.0, 800.0, 3200.0)
    etas: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    classifiers: int = 200
    independent: bool = False


@dataclass(frozen=True)
class Path:
    settings: Settings
    time: float
    eta: float
    seed: int


@dataclass(frozen=True)
class Results:
    """kl: (T, seed); gap: (T, η, seed); bound: the blocking bound by T at η = 1."""

    times: tuple[float, ...]
    gap_times: tuple[float, ...]
    etas: tuple[float, ...]
    kl: np.ndarray
    gap: np.ndarray
    bound: np.ndarray


QUICK = Settings()
study = Study(
    "diffusions/path-length",
    title="The error falls with the length of the path, not with the number of pairs",
    source=shared.SOURCE,
    at="Theorem 1",
    quick=QUICK,
    full=Settings(times=(1e4, 1e5, 1e6), seeds=20, gap_times=(50.0, 800.0, 12_800.0, 1e5), classifiers=10_000),
    null=replace(QUICK, independent=True),
)


def kernel_error(job: Path) -> float:
    rng, q = np.random.default_rng([job.seed, int(job.time)]), GaussianContrast(0.0, 1.5)
    path = OrnsteinUhlenbeck().path(int(job.time / job.eta), job.eta, rng)
    path = rng.permutation(path) if job.settings.independent else path
    read = read_ou(fit_logit(make_pairs(path, q, rng), EvenLogit()), job.eta, q)
    return ou_kl(read["a"], read["v"], job.eta)


def quadratic_features(z: np.ndarray, later: np.ndarray) -> np.ndarray:
    """[1, z, z′, zz′, z² − 1, z′² − 1], axis first."""
    return np.stack([np.ones_like(z), z, later, z * later, z**2 - 1, later**2 - 1])


def gap(job: Path) -> float:
    """sup over the class of |R̂ − R| on one path; R by Gauss–Hermite quadrature."""
    theta = 0.7 * np.random.default_rng(7).normal(size=(job.settings.classifiers, 6))
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    a = np.exp(-job.eta)
    z, noise = np.meshgrid(nodes, nodes, indexing="ij")
    mass = np.outer(weights, weights).ravel()
    positive = expit(theta @ quadratic_features(z.ravel(), (a * z + np.sqrt(1 - a**2) * noise).ravel()))
    negative = expit(theta @ quadratic_features(z.ravel(), noise.ravel()))
    population = 0.5 * ((positive - 1) ** 2 + negative**2) @ mass
    rng = np.random.default_rng([job.seed, int(job.time), round(1000 * job.eta)])
    process, count = OrnsteinUhlenbeck(), int(job.time / job.eta) // 2 * 2
    if job.settings.independent:
        x = process.start(count // 2, rng)
        path = np.stack([x, process.step(x, job.eta, rng)], 1).reshape(count, 1)
    else:
        path = process.path(count, job.eta, rng)
    pairs = make_pairs(path, StationaryContrast(), rng)
    predictions = expit(theta @ quadratic_features(pairs.x[:, 0], pairs.later[:, 0]))
    return generalization_gap(predictions, pairs.y.astype(float), population)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [Path(settings, time, 0.5, seed) for time in settings.times for seed in range(settings.seeds)]
    kl = np.array(lab.map(kernel_error, jobs)).reshape(len(settings.times), -1)
    cells = [(time, eta) for time in settings.gap_times for eta in settings.etas]
    gaps = lab.map(gap, [Path(settings, time, eta, seed) for time, eta in cells for seed in range(settings.seeds)])
    bounds = [
        blocking_bound(time, lambda t: float(np.exp(-t)), lambda mu: massart_cap(settings.classifiers, mu), 0.05)[1]
        for time in settings.gap_times
    ]
    shape = len(settings.gap_times), len(settings.etas), settings.seeds
    return Results(
        settings.times, settings.gap_times, settings.etas, kl, np.array(gaps).reshape(shape), np.array(bounds)
    )


@study.claim(Slope(between=(-1.25, -0.7)), at="Theorem 2")
def kl_falls_like_one_over_time(results: Results) -> np.ndarray:
    """The average KL falls like 1/T.

    Slope of the logarithm of the mean KL over seeds against log T.
    """
    return np.stack([np.log(results.times), np.log(results.kl.mean(1))], 1)


@study.claim(Slope(between=(-0.65, -0.35)), at="Theorem 1")
def gap_falls_like_the_root_of_time(results: Results) -> np.ndarray:
    """At the smallest interval the gap falls like T^(−1/2).

    Slope of the logarithm of the mean gap over seeds against log T, η = 0.01.
    """
    return np.stack([np.log(results.gap_times), np.log(results.gap[:, 0].mean(1))], 1)


@study.claim(Mean(below=1.5), at="Theorem 1", paper="depends on T alone")
def more_pairs_do_not_help(results: Results) -> np.ndarray:
    """Three times as many pairs from the same path do not make the gap smaller by √3.

    Gap at η = 0.03 divided by the gap at η = 0.01, averages over T, one value per seed; independent pairs give 1.73.
    """
    return results.gap[:, 1].mean(0) / results.gap[:, 0].mean(0)


@study.claim(Mean(above=1.4), at="Theorem 1")
def at_long_intervals_pairs_count(results: Results) -> np.ndarray:
    """At long intervals the number of pairs counts.

    Gap at η = 3 divided by the gap at η = 1, averages over T, one value per seed.
    """
    return results.gap[:, 5].mean(0) / results.gap[:, 4].mean(0)


@study.claim(Mean(above=1.0), at="Lemma 2", id="blocking-bound-holds")
def bound_is_valid(results: Results) -> np.ndarray:
    """The blocking bound is valid, and vacuous at these lengths.

    Smallest ratio of bound and gap over T at η = 1, one value per seed.
    """
    return (results.bound[:, None] / results.gap[:, 4]).min(0)


@study.figure
def curves(results: Results) -> Figure:
    figure, (left, right) = figures.new(2, title="The length of the path decides")
    figures.band(left, results.times, results.kl.T, "average KL")
    left.plot(results.times, results.kl[0].mean() * results.times[0] / np.array(results.times), "k:", label="1/T")
    left.set(xscale="log", yscale="log", xlabel="length of the path T", ylabel="average KL (nats)")
    for time, rows in zip(results.gap_times, results.gap):
        figures.band(right, results.etas, rows.T, f"T = {time:g}")
    right.set(xscale="log", yscale="log", xlabel="interval η", ylabel="largest gap of the class")
    left.legend()
    right.legend(fontsize=8)
    return figure
