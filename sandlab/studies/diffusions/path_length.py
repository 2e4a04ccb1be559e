"""What counts is how long the path is: the error of the kernel falls like 1/T.

(a) OU, η = ½, q = N(0, 1.5²): average KL against the length T, in one dimension with four features, in more with all
monomials of degree two. (b) The largest gap between empirical and population risk over a fixed class of classifiers,
for several T and η: at small η more pairs from the same path do not help. The blocking bound (Lemma 2) is drawn
beside it: it is valid and vacuous at these lengths.

What was learnt: in one dimension, with four features, the KL of single paths varies by a factor of a hundred, and
twelve seeds left the interval of the slope (−1.5 to −0.8) wider than what is asked; in two dimensions it was inside.
Quick therefore has 48 seeds, chosen once after that look.

Chosen after a look at results: that the slopes of (a) are fitted to means over groups of four seeds. At first there was
one point for each length, the mean over all seeds, whose scatter says little about the seeds. The ratios of (b) are
judged by the jackknife on the log scale, which was also settled on after first results. The asked intervals are the
specification's and were not changed.

Full has the specification's dimensions, lengths (in (a) from 10⁴ to 10⁶: from a path of 10³, in eight dimensions, no
kernel that can be normalised is learnt) and 10⁴ classifiers, and 50 paths in (b) (`gap_seeds`) instead of 200, a factor
of four. Predictions of the class are in single precision. Exponents of single dimensions are −0.91, −0.93, −1.07 and
−1.29 there; the claim about more dimensions is not measured, since the mean KL of some group of four seeds has no
logarithm: from 20 000 draws a KL as small as that of 10⁶ may come out negative (our reading, not checked seed by seed).

The null has no path: (a) shuffles it; (b) draws independent pairs, whose number depends on η up to 1 and not on T.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.diffusions.classifiers import EvenLogit, PolynomialLogit, read_ou
from sandlab.learning.diffusions.on_device import fit_logit_on
from sandlab.lenses.diffusions.kernels import ou_kl, sampled_kl
from sandlab.lenses.diffusions.mixing import blocking_bound, massart_cap
from sandlab.studies.claims import Ratio, Slope
from sandlab.studies.diffusions import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.diffusions.contrast import GaussianContrast, StationaryContrast
from sandlab.worlds.diffusions.pairs import ContrastivePairs, Pairs, make_pairs
from sandlab.worlds.diffusions.potentials import Quadratic
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck

IN_CACHE, ON_GPU = 1 << 18, 1 << 27
"""Predictions that are held at once: on a CPU they stay in its cache."""


@dataclass(frozen=True)
class Settings:
    """Lengths and seeds of both parts; independent: no dependence between observations (the null)."""

    times: tuple[float, ...] = (625.0, 2500.0, 10_000.0, 40_000.0)
    seeds: int = 12
    dimensions: tuple[int, ...] = (1, 2)
    gap_times: tuple[float, ...] = (50.0, 200.0, 800.0, 3200.0)
    etas: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    classifiers: int = 200
    gap_seeds: int = 12
    independent: bool = False


@dataclass(frozen=True)
class Path:
    settings: Settings
    time: float
    eta: float
    seed: int
    dimensions: int = 1
    device: str = "cpu"


@dataclass(frozen=True)
class Results:
    """kl: (dimension, T, seed); gap: (T, η, seed); bound: the blocking bound by T."""

    times: tuple[float, ...]
    dimensions: tuple[int, ...]
    gap_times: tuple[float, ...]
    etas: tuple[float, ...]
    kl: np.ndarray
    gap: np.ndarray
    bound: np.ndarray


QUICK = Settings(seeds=48)
study = Study(
    "diffusions/path-length",
    title="The error falls with the length of the path, not with the number of pairs",
    source=shared.SOURCE,
    at="Theorem 1",
    quick=QUICK,
    full=Settings(
        times=(1e4, 1e5, 1e6),
        seeds=20,
        dimensions=(1, 2, 4, 8),
        gap_times=(50.0, 800.0, 12_800.0, 1e5),
        classifiers=10_000,
        gap_seeds=50,
    ),
    null=Settings(independent=True),
)


def kernel_error(job: Path) -> float:
    """Average KL of the kernel from one path: in closed form for d = 1, from 20 000 draws otherwise."""
    rng, q, d = np.random.default_rng([job.seed, int(job.time)]), GaussianContrast(0.0, 1.5), job.dimensions
    process = OrnsteinUhlenbeck(Quadratic(tuple(tuple(float(i == j) for j in range(d)) for i in range(d))))
    path = process.path(int(job.time / job.eta), job.eta, rng)
    path = rng.permutation(path) if job.settings.independent else path
    pairs = make_pairs(path, q, rng)
    if d == 1:
        read = read_ou(fit_logit_on(job.device, pairs, EvenLogit()), job.eta, q)
        return ou_kl(read["a"], read["v"], job.eta)
    found = fit_logit_on(job.device, pairs, PolynomialLogit(d))
    return sampled_kl(ContrastivePairs(process, q, job.eta), found.logit, np.random.default_rng(0), 20_000)


def quadratic_features(z: np.ndarray, later: np.ndarray) -> np.ndarray:
    """[1, z, z′, zz′, z² − 1, z′² − 1], axis first."""
    return np.stack([np.ones_like(z), z, later, z * later, z**2 - 1, later**2 - 1])


def population_risk(theta: np.ndarray, eta: float, device: str) -> np.ndarray:
    """R of every classifier by Gauss–Hermite quadrature over (z, z′)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    a = np.exp(-eta)
    z, noise = np.meshgrid(nodes, nodes, indexing="ij")
    later = a * z + np.sqrt(1 - a**2) * noise
    mass = torch.from_numpy(np.outer(weights, weights).ravel()).to(device)
    positive, negative = (
        torch.from_numpy(quadratic_features(z.ravel(), each.ravel())).to(device) for each in (later, noise)
    )
    risk = [
        0.5 * ((torch.sigmoid(part @ positive) - 1) ** 2 + torch.sigmoid(part @ negative) ** 2) @ mass
        for part in torch.from_numpy(theta).to(device).split(500)
    ]
    return torch.cat(risk).cpu().numpy()


@functools.lru_cache(maxsize=16)
def classifiers(count: int, eta: float, device: str) -> tuple[np.ndarray, np.ndarray]:
    """The class, and the risk of each of its members; every path of an interval has the same."""
    theta = 0.7 * np.random.default_rng(7).normal(size=(count, 6))
    return theta, population_risk(theta, eta, device)


def drawn_pairs(job: Path) -> Pairs:
    rng = np.random.default_rng([job.seed, int(job.time), round(1000 * job.eta)])
    process, count = OrnsteinUhlenbeck(), int(job.time / job.eta) // 2 * 2
    if job.settings.independent:
        x = process.start(round(160 / min(job.eta, 1.0)), rng)
        path = np.stack([x, process.step(x, job.eta, rng)], 1).reshape(-1, 1)
    else:
        path = process.path(count, job.eta, rng)
    return make_pairs(path, StationaryContrast(), rng)


def gap(job: Path) -> float:
    """sup over the class of |R̂ − R| on one path; pairs are taken in parts, so that the class may be large."""
    theta, population = classifiers(job.settings.classifiers, job.eta, job.device)
    pairs = drawn_pairs(job)
    sign = np.where(pairs.y, -1.0, 1.0)  # (σ(u) − 1)² = σ(−u)²: the label is a sign of the logit
    rows = torch.from_numpy((sign * quadratic_features(pairs.x[:, 0], pairs.later[:, 0])).T).float().to(job.device)
    weights = torch.from_numpy(theta.T).float().to(job.device)
    total = torch.zeros(len(theta), dtype=torch.float64, device=job.device)
    held = IN_CACHE if job.device == "cpu" else ON_GPU
    for part in rows.split(max(1, held // len(theta))):
        total += (part @ weights).sigmoid_().square_().sum(0)
    return float(np.abs(total.cpu().numpy() / len(pairs) - population).max())


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [
        Path(settings, time, 0.5, seed, d, lab.device)
        for d in settings.dimensions
        for time in settings.times
        for seed in range(settings.seeds)
    ]
    kl = np.array(lab.map(kernel_error, jobs, label="kernels"))
    cells = [(time, eta) for time in settings.gap_times for eta in settings.etas]
    gaps = lab.map(
        gap, [Path(settings, *cell, seed, 1, lab.device) for cell in cells for seed in range(settings.gap_seeds)]
    )
    bounds = [
        blocking_bound(time, lambda t: float(np.exp(-t)), lambda mu: massart_cap(settings.classifiers, mu), 0.05)[1]
        for time in settings.gap_times
    ]
    return Results(
        settings.times,
        settings.dimensions,
        settings.gap_times,
        settings.etas,
        kl.reshape(len(settings.dimensions), len(settings.times), settings.seeds),
        np.array(gaps).reshape(len(settings.gap_times), len(settings.etas), settings.gap_seeds),
        np.array(bounds),
    )


@study.claim(Slope(between=(-1.25, -0.7)), at="Theorem 2")
def kl_falls_like_one_over_time(results: Results) -> np.ndarray:
    """The average KL falls like 1/T.

    Slope of the logarithm of the mean KL of four seeds against log T, one point per length and group of seeds.
    """
    return grouped(results, results.kl[:1])


@study.claim(Slope(between=(-1.25, -0.7)), at="Theorem 2")
def so_it_does_in_more_dimensions(results: Results) -> np.ndarray:
    """So it does in more dimensions.

    The same slope over all dimensions above one, each with a level of its own.
    """
    return grouped(results, results.kl[1:])


def grouped(results: Results, kl: np.ndarray) -> np.ndarray:
    """Rows (log T, log mean KL of a group of four seeds); each dimension (first axis) is centred."""
    logs = np.log(np.stack([part.mean(-1) for part in np.array_split(kl, max(kl.shape[-1] // 4, 1), axis=-1)], -1))
    centred = logs - logs.mean((1, 2), keepdims=True)
    times = np.broadcast_to(np.log(results.times)[:, None], centred.shape)
    return np.stack([times.ravel(), centred.ravel()], 1)


@study.claim(Slope(between=(-0.65, -0.35)), at="Theorem 1")
def gap_falls_like_the_root_of_time(results: Results) -> np.ndarray:
    """At the smallest interval the gap falls like T^(−1/2).

    Slope of the logarithm of the mean gap over seeds against log T, η = 0.01.
    """
    return np.stack([np.log(results.gap_times), np.log(results.gap[:, 0].mean(1))], 1)


def gap_ratio(gaps: np.ndarray) -> float:
    """Mean gap over seeds of the first of two intervals divided by that of the second, averaged over T."""
    means = gaps.mean(-1)
    return float((means[:, 0] / means[:, 1]).mean())


@study.claim(Ratio(below=1.35), at="Theorem 1", paper="depends on T alone")
def more_pairs_do_not_help(results: Results) -> np.ndarray:
    """Three times as many pairs from the same path do not make the gap smaller by √3.

    Mean gap at η = 0.03 divided by that at η = 0.01, averaged over T; jackknife. Independent pairs give 1.73.
    """
    return shared.pseudo_ratios(gap_ratio, results.gap[:, [1, 0]])


@study.claim(Ratio(above=1.4), at="Theorem 1")
def at_long_intervals_pairs_count(results: Results) -> np.ndarray:
    """At long intervals the number of pairs counts.

    Mean gap at η = 3 divided by that at η = 1, averaged over T; jackknife over seeds.
    """
    return shared.pseudo_ratios(gap_ratio, results.gap[:, [5, 4]])


@study.table
def exponents(results: Results) -> Rows:
    """Exponent of T in the mean KL over seeds, for every dimension."""
    means = np.log(results.kl.mean(-1))
    fitted = [np.polyfit(np.log(results.times), row, 1)[0] for row in means]
    return [{"d": d, "exponent of T": float(slope)} for d, slope in zip(results.dimensions, fitted)]


@study.figure
def curves(results: Results) -> Figure:
    figure, (left, right) = figures.new(2, title="The length of the path decides")
    for d, rows in zip(results.dimensions, results.kl):
        figures.band(left, results.times, rows.T, f"d = {d}")
    left.plot(results.times, results.kl[0, 0].mean() * results.times[0] / np.array(results.times), "k:", label="1/T")
    left.set(xscale="log", yscale="log", xlabel="length of the path T", ylabel="average KL (nats)")
    for colour, time, rows, bound in zip(figures.COLOURS, results.gap_times, results.gap, results.bound):
        figures.band(right, results.etas, rows.T, f"T = {time:g}", color=colour)
        right.axhline(bound, color=colour, linestyle=":", linewidth=1)
    right.set(xscale="log", yscale="log", xlabel="interval η", ylabel="largest gap of the class")
    right.plot([], [], "k:", label="blocking bound")
    left.legend()
    right.legend(fontsize=8)
    return figure
