"""The contrast law decides how well the kernel is learnt, and the loss does not tell.

Twelve contrast laws for the same OU process (η = ½, 10⁴ pairs, six quadratic features). The error grows with log c_q,
the truncated constant of eq. 2.4; the law with the smallest optimal loss, N(6, 1), gives the worst kernel. A value is
the median over a group of eight paths; groups are independent. The heat map shows the error over means and standard
deviations of a Gaussian contrast law: by BFGS on quadratic features in quick; in full by networks of the
specification's size on 10⁷ pairs, in one to eight dimensions. Its grid is coarser there: 8 means × 4 deviations
(`means`, `sds`) instead of 20 × 10, a factor of six, with two seeds (`map_seeds`) instead of five.

What was learnt: medians of eight paths are noisy among the eight laws whose errors differ by less than a factor of
five, so that the rank correlation of a group lies between 0.8 and 0.97 (its mean was 0.89; the specification's single
group had 0.95), and the ratio of N(2, 1) to N(0, 2²) between 2 and 26. Six groups left both open. Quick therefore has
forty (`seeds` = 320), chosen once after that look; full has fifty. The ratio is decided (7.6 and 6.9, more than five);
the mean rank correlation is 0.87 and 0.86, so near to the 0.85 asked for that both intervals hold it.

The null shuffles the path: no law learns the kernel, and the order is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from sandlab import figures
from sandlab.learning.diffusions.classifiers import PolynomialLogit, fit_logit, read_ou
from sandlab.learning.diffusions.networks import ContrastiveSquares, network_logit
from sandlab.learning.experiment import Training
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.diffusions.kernels import contrast_constant, ou_kl, ou_optimal_risk, sampled_kl
from sandlab.models.base import build
from sandlab.models.mlp import MLPConfig
from sandlab.random import rng
from sandlab.studies.claims import Mean, Ratio
from sandlab.studies.diffusions import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.diffusions._device import SideBySide, SteadyOU
from sandlab.worlds.diffusions.contrast import ContrastLaw, GaussianContrast, NearbyContrast, StationaryContrast
from sandlab.worlds.diffusions.pairs import ContrastivePairs, make_pairs
from sandlab.worlds.diffusions.potentials import Quadratic
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck

LAWS: dict[str, ContrastLaw] = {
    "N(0, 2²)": GaussianContrast(0.0, 2.0),
    "N(0, 1.5²)": GaussianContrast(0.0, 1.5),
    "N(x, 3²)": NearbyContrast(3.0),
    "N(x, 1)": NearbyContrast(1.0),
    "N(0, 4²)": GaussianContrast(0.0, 4.0),
    "π": StationaryContrast(),
    "N(0, 10²)": GaussianContrast(0.0, 10.0),
    "N(0, 30²)": GaussianContrast(0.0, 30.0),
    "N(x, ½²)": NearbyContrast(0.5),
    "N(2, 1)": GaussianContrast(2.0, 1.0),
    "N(4, 1)": GaussianContrast(4.0, 1.0),
    "N(6, 1)": GaussianContrast(6.0, 1.0),
}
WORST = 1e4
"""KL entered for a kernel that cannot be normalised."""


GROUP = 8
"""Paths whose median is one value."""


@dataclass(frozen=True)
class Settings:
    """Length of the path and seeds (a multiple of eight); shuffled destroys its order (the null).

    means, sds, map_seeds   of the heat map; dimensions, hidden, training: its networks (no hidden layer: quadratic)
    """

    time: float = 10_000.0
    seeds: int = 48
    means: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0, 4.0)
    sds: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)
    map_seeds: int = 5
    dimensions: tuple[int, ...] = (1,)
    hidden: tuple[int, ...] = ()
    training: Training = field(default_factory=lambda: Training(steps=1500, batch_size=65_536, lr=1e-3))
    shuffled: bool = False


@dataclass(frozen=True)
class Path:
    settings: Settings
    q: ContrastLaw
    seed: int


@dataclass(frozen=True)
class Networks:
    """One network for every law of the map, in one dimension d and for one seed."""

    settings: Settings
    d: int
    seed: int
    device: str


@dataclass(frozen=True)
class Results:
    """KL by (law, seed); truncated log c_q and ε* by law; map: median KL by (dimension, mean, sd)."""

    kl: np.ndarray
    constant: np.ndarray
    risk: np.ndarray
    means: tuple[float, ...]
    sds: tuple[float, ...]
    dimensions: tuple[int, ...]
    map: np.ndarray

    @property
    def medians(self) -> np.ndarray:
        """Median KL of each group of paths: axes law, group."""
        groups = self.kl.shape[1] // GROUP
        return np.median(self.kl[:, : groups * GROUP].reshape(len(self.kl), groups, GROUP), -1)


QUICK = Settings(seeds=320)
study = Study(
    "diffusions/contrast-choice",
    title="Kernels are learnt best from negatives that resemble positives; the loss misleads",
    source=shared.SOURCE,
    at="eq. 2.4",
    quick=QUICK,
    full=Settings(
        seeds=400,
        means=tuple(float(mean) for mean in np.linspace(0, 7, 8)),
        sds=tuple(float(sd) for sd in np.geomspace(0.5, 32, 4)),
        map_seeds=2,
        dimensions=(1, 2, 4, 8),
        hidden=(256, 256, 256),
        training=Training(steps=1200, batch_size=8192, lr=1e-3, precision="tf32"),
    ),
    null=Settings(shuffled=True),
)


def fit(job: Path) -> float:
    q, settings = job.q, job.settings
    rng = np.random.default_rng([job.seed, *np.frombuffer(repr(q).encode(), dtype=np.uint8)])
    path = OrnsteinUhlenbeck().path(int(settings.time / 0.5), 0.5, rng)
    path = rng.permutation(path) if settings.shuffled else path
    found = fit_logit(make_pairs(path, q, rng), PolynomialLogit())
    theta, read = found.theta, read_ou(found, 0.5, q)
    if not np.isfinite(read["v"]):
        return WORST
    mean = q.mean if isinstance(q, GaussianContrast) else 0.0
    scale = read["v"] / (q.sd**2 if isinstance(q, GaussianContrast) else 1.0)
    shift = theta[2] * read["v"] + mean * scale  # the learnt intercept of E[x′ | x]; the truth is 0
    return min(ou_kl(read["a"], read["v"], 0.5) + shift**2 / (2 * read["v"]), WORST)


def isotropic(d: int) -> SteadyOU:
    return SteadyOU(Quadratic(tuple(tuple(float(i == j) for j in range(d)) for i in range(d))))


def gaussian_laws(settings: Settings) -> tuple[GaussianContrast, ...]:
    return tuple(GaussianContrast(mean, sd) for mean in settings.means for sd in settings.sds)


def heat_map(settings: Settings, lab: Lab) -> np.ndarray:
    """Median KL over seeds for every Gaussian law of the map."""
    shape, seeds = (len(settings.means), len(settings.sds)), range(settings.map_seeds)
    if not settings.hidden:
        jobs = [Path(settings, q, 1000 + seed) for q in gaussian_laws(settings) for seed in seeds]
        found = np.array(lab.map(fit, jobs, label="heat map"))
        return np.median(found.reshape(*shape, -1), -1)[None]
    cells = [Networks(settings, d, seed, lab.device) for d in settings.dimensions for seed in seeds]
    trained = np.array(lab.map(networks, cells, label="heat map"))
    return np.median(trained.reshape(len(settings.dimensions), settings.map_seeds, *shape), 1)


def networks(job: Networks) -> np.ndarray:
    """Average KL of each law's network, from 20 000 draws; all are trained at once, on examples of their own."""
    settings, process, laws = job.settings, isotropic(job.d), gaussian_laws(job.settings)
    config = MLPConfig(features=2 * job.d, hidden=settings.hidden, outputs=2, activation="tanh")
    first, how = job.seed * len(laws), settings.training
    population = Population(lambda _seed: build(config), seeds=range(first, first + len(laws)), strategy="native")
    train(
        population.to(job.device),
        ContrastivePairs(process, SideBySide(laws), 0.5),
        steps=how.steps,
        batch_size=how.batch_size,
        lr=how.lr,
        optimizer=how.optimizer,
        schedule="cosine",
        objective=ContrastiveSquares(),
        precision=how.precision if job.device != "cpu" else "float32",
        rng=rng(job.seed, "heat map", job.d, device=job.device),
        data="separate",
    )
    logits = [network_logit(each) for each in population.members()]
    worlds = [ContrastivePairs(process, law, 0.5) for law in laws]
    kl = [sampled_kl(world, logit, np.random.default_rng(0), 20_000) for world, logit in zip(worlds, logits)]
    return np.minimum(kl, WORST)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [Path(settings, q, seed) for q in LAWS.values() for seed in range(settings.seeds)]
    return Results(
        np.array(lab.map(fit, jobs)).reshape(len(LAWS), settings.seeds),
        np.array([contrast_constant(q, 0.5) for q in LAWS.values()]),
        np.array([ou_optimal_risk(q, 0.5) for q in LAWS.values()]),
        settings.means,
        settings.sds,
        settings.dimensions,
        heat_map(settings, lab),
    )


def row(name: str) -> int:
    return list(LAWS).index(name)


@study.claim(Mean(above=0.85))
def error_follows_the_constant(results: Results) -> list[float]:
    """The error grows with c_q.

    Rank correlation of log c_q and the median log KL of eight paths over the twelve laws, one value per group.
    """
    return [float(spearmanr(results.constant, np.log(each)).statistic) for each in results.medians.T]


@study.claim(Ratio(above=5.0))
def shifted_by_two_is_worse(results: Results) -> np.ndarray:
    """Negatives two standard deviations away cost a factor of five.

    Median KL with N(2, 1) divided by that with N(0, 2²), one value per group.
    """
    return results.medians[row("N(2, 1)")] / results.medians[row("N(0, 2²)")]


@study.claim(Ratio(above=50.0))
def shifted_by_four_is_useless(results: Results) -> np.ndarray:
    """Four away cost a factor of fifty.

    Median KL with N(4, 1) divided by that with π, one value per group.
    """
    return results.medians[row("N(4, 1)")] / results.medians[row("π")]


@study.claim(Ratio(above=100.0))
def smallest_loss_is_the_worst_kernel(results: Results) -> np.ndarray:
    """The law with the smallest optimal loss gives the worst kernel.

    Median KL of the law with the smallest ε* divided by the smallest median of the group.
    """
    return results.medians[int(results.risk.argmin())] / results.medians.min(0)


@study.figure
def scatter(results: Results) -> Figure:
    figure, (left, right) = figures.new(2, title="The constant c_q predicts the error; the loss does not")
    kl = np.median(results.kl, 1)
    for axis, x in ((left, results.constant), (right, results.risk)):
        axis.plot(x, kl, "o")
        for name, a, b in zip(LAWS, x, kl):
            axis.annotate(name, (a, b), fontsize=7, xytext=(3, 3), textcoords="offset points")
    left.set(xscale="log", yscale="log", xlabel="truncated log c_q", ylabel="median average KL (nats)")
    right.set(yscale="log", xlabel="smallest squared loss ε*", ylabel="median average KL (nats)")
    return figure


@study.figure
def means_and_spreads(results: Results) -> Figure:
    count = len(results.dimensions)
    figure, axes = figures.new(count, title="Error of the kernel for a Gaussian contrast law (log₁₀ of the median KL)")
    for axis, d, values in zip(axes, results.dimensions, results.map):
        figures.heatmap(
            axis, np.log10(values.T[::-1]), title=f"d = {d}", x="mean of the law", y="its standard deviation"
        )
        axis.set_xticks(range(len(results.means)), [f"{mean:g}" for mean in results.means])
        axis.set_yticks(range(len(results.sds)), [f"{sd:g}" for sd in results.sds[::-1]])
    return figure
