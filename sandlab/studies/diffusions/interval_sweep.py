"""At a fixed length of the path the interval between the two points of a pair hardly matters, until pairs say nothing.

An OU process observed for a time T every η: the standard deviation of ρ̂ changes by less than a factor of two between
η = 0.05 and η = 1, although the number of pairs falls twentyfold, and explodes at η = 3. The smallest possible loss
says nothing about this: it rises to ¼ as η grows with the stationary contrast, and as η falls with negatives near x. A
Langevin diffusion over log cosh, with features of degree four, gives the same picture in KL.

An estimate that is no number (a kernel that cannot be normalised, or â ≤ 0), or above 5, is entered as ρ̂ = 5. Standard
deviations over seeds are judged by the jackknife. The null shuffles the path.

What was learnt: the ratios are where the specification says (about 1.5 and above 20), but twenty seeds measure a ratio
of standard deviations too roughly for a verdict: the intervals reached 2.4 and down to 2.6. Quick therefore has eighty,
chosen once after that look, and both claims hold there. Full has the specification's fifty: on its longest path the
error at η = 3.2 is six times that at η = ½, with an interval from 3.7 to 9.2, which is open. Its paths over log cosh,
which no claim reads, are simulated up to T = 10⁴ (`log_cosh_times`) and for ten seeds (`log_cosh_seeds`) instead of 10⁵
and fifty: factors of ten and of five.

Chosen after a look at results: that the jackknife works on the logarithm of the ratio. At first it worked on the ratio
itself, whose interval can reach below zero. The thresholds of 2 and 5 are the specification's and were not changed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.diffusions.classifiers import EvenLogit, KernelEstimate, PolynomialLogit, read_ou
from sandlab.learning.diffusions.on_device import fit_logit_on
from sandlab.lenses.diffusions.kernels import contrast_constant, kernel_metrics, ou_optimal_risk
from sandlab.studies.claims import Exact, NotMeasured, Ratio
from sandlab.studies.diffusions import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.diffusions.contrast import ContrastLaw, GaussianContrast, NearbyContrast, StationaryContrast
from sandlab.worlds.diffusions.grid import GridChain
from sandlab.worlds.diffusions.pairs import ContrastivePairs, StoredPairs, make_pairs
from sandlab.worlds.diffusions.potentials import LogCosh
from sandlab.worlds.diffusions.processes import Langevin, OrnsteinUhlenbeck

LAWS = ("stationary", "N(x, 2η)")
TABLE = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
LARGEST = 5.0


@dataclass(frozen=True)
class Settings:
    """Lengths of the path, intervals and seeds; the same for log cosh; shuffled: its order is destroyed (the null)."""

    times: tuple[float, ...] = (20_000.0,)
    etas: tuple[float, ...] = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
    seeds: int = 20
    log_cosh_times: tuple[float, ...] = (2_000.0,)
    log_cosh_etas: tuple[float, ...] = (0.1, 0.5, 1.0)
    log_cosh_seeds: int = 3
    shuffled: bool = False


@dataclass(frozen=True)
class Path:
    settings: Settings
    time: float
    eta: float
    law: str
    seed: int
    device: str = "cpu"


@dataclass(frozen=True)
class Results:
    """rho: (T, law, η, seed); risk and constant: (law, η of the table); log_cosh: KL (T, η, seed)."""

    times: tuple[float, ...]
    etas: tuple[float, ...]
    log_cosh_etas: tuple[float, ...]
    rho: np.ndarray
    risk: np.ndarray
    constant: np.ndarray
    log_cosh: np.ndarray

    def at(self, eta: float) -> int:
        """Place of the interval nearest to η."""
        return int(np.abs(np.log(np.array(self.etas) / eta)).argmin())


QUICK = Settings(seeds=80)
WIDE = tuple(float(eta) for eta in np.geomspace(0.01, 5, 15).round(4))
study = Study(
    "diffusions/interval-sweep",
    title="The length of the path decides, not the interval between the two points of a pair",
    source=shared.SOURCE,
    at="section 2.1, Theorem 1",
    quick=QUICK,
    full=Settings((1e3, 1e4, 1e5), WIDE, 50, (1e3, 1e4), WIDE, 10),
    null=Settings(shuffled=True),
)


def contrast(law: str, eta: float) -> ContrastLaw:
    return StationaryContrast() if law == "stationary" else NearbyContrast.natural(eta)


def fit(job: Path) -> float:
    """ρ̂ of one path."""
    rng, q = np.random.default_rng([job.seed, round(1e4 * job.eta), LAWS.index(job.law)]), contrast(job.law, job.eta)
    path = OrnsteinUhlenbeck().path(int(job.time / job.eta) // 2 * 2, job.eta, rng)
    path = rng.permutation(path) if job.settings.shuffled else path
    rho = read_ou(fit_logit_on(job.device, make_pairs(path, q, rng), EvenLogit()), job.eta, q)["rho"]
    return min(float(np.nan_to_num(rho, nan=LARGEST)), LARGEST)


def fit_log_cosh(job: Path) -> float:
    """KL of the kernel from 100 parallel paths with the total length T, features of degree four.

    A polynomial of degree four need not be bounded above: the kernel is compared on |x| ≤ 2 (three standard
    deviations), where its rows are normalised.
    """
    chain = GridChain(LogCosh(), 2.0, 200)
    law = ContrastivePairs(Langevin(LogCosh(), reach=5.0), GaussianContrast(0.0, 1.5 * chain.sd), job.eta)
    x, later = StoredPairs(law, 100, max(1, int(job.time / job.eta / 200)), job.seed).positives.transpose(1, 0, 2)
    path, rng = np.stack([x, later], 1).reshape(-1, 1), np.random.default_rng(job.seed)
    path = rng.permutation(path) if job.settings.shuffled else path
    found = fit_logit_on(job.device, make_pairs(path, law.q, rng), PolynomialLogit(1, 4))
    kernel = KernelEstimate(found.logit, law.q).normalised(chain.x, chain.width)
    return kernel_metrics(chain.kernel(job.eta), kernel, chain.stationary, chain.x, job.eta, ())["avg_kl"]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    cells, seeds, there = itertools.product(settings.times, LAWS, settings.etas), range(settings.seeds), lab.device
    jobs = [Path(settings, time, eta, law, seed, there) for time, law, eta in cells for seed in seeds]
    shape = len(settings.times), len(LAWS), len(settings.etas), settings.seeds
    others = [
        Path(settings, time, eta, "stationary", seed, there)
        for time in settings.log_cosh_times
        for eta in settings.log_cosh_etas
        for seed in range(settings.log_cosh_seeds)
    ]
    kl = np.array(lab.map(fit_log_cosh, others, label="log cosh"))
    return Results(
        settings.times,
        settings.etas,
        settings.log_cosh_etas,
        np.array(lab.map(fit, jobs)).reshape(shape),
        np.array([[ou_optimal_risk(contrast(law, eta), eta) for eta in TABLE] for law in LAWS]),
        np.array([[contrast_constant(contrast(law, eta), eta) for eta in TABLE] for law in LAWS]),
        kl.reshape(len(settings.log_cosh_times), len(settings.log_cosh_etas), -1),
    )


def spread_ratio(rows: np.ndarray) -> float:
    """Largest standard deviation over seeds divided by the smallest, over the rows."""
    spread = rows.std(-1, ddof=1)
    return float(spread.max() / max(spread.min(), 1e-9))


@study.claim(Ratio(below=2.0), at="Theorem 1")
def the_interval_hardly_matters(results: Results) -> np.ndarray:
    """Between η = 0.05 and η = 1 the error of ρ̂ changes by less than a factor of two.

    Largest divided by smallest standard deviation of ρ̂ over these intervals, stationary contrast; jackknife.
    """
    return shared.pseudo_ratios(spread_ratio, results.rho[-1, 0, results.at(0.05) : results.at(1.0) + 1])


@study.claim(Ratio(above=5.0))
def no_information_at_long_intervals(results: Results) -> np.ndarray:
    """At η = 3 the error is more than five times that at η = ½.

    Ratio of the standard deviations of ρ̂, longest path, stationary contrast; jackknife.
    """
    rows = results.rho[-1, 0, [results.at(3.0), results.at(0.5)]]
    if np.median(rows[1]) >= LARGEST:
        raise NotMeasured("no drift can be read off at η = ½")
    return shared.pseudo_ratios(lambda pair: float(pair[0].std(ddof=1) / max(pair[1].std(ddof=1), 1e-9)), rows)


@study.claim(Exact(above=0.0))
def stationary_contrast_gets_harder(results: Results) -> list[float]:
    """With the stationary contrast the smallest loss rises towards ¼ as η grows.

    Differences of ε* between consecutive intervals, and 0.001 minus the distance from ¼ at η = 3.
    """
    return [*np.diff(results.risk[0]), 1e-3 - (0.25 - results.risk[0, -1])]


@study.claim(Exact(above=0.0))
def nearby_contrast_gets_easier(results: Results) -> list[float]:
    """With negatives near x it rises towards ¼ as η falls.

    Differences of ε* between consecutive intervals, backwards, and 0.001 minus the distance from ¼ at η = 0.02.
    """
    return [*-np.diff(results.risk[1]), 1e-3 - (0.25 - results.risk[1, 0])]


@study.figure
def intervals(results: Results) -> Figure:
    figure, axes = figures.new(
        4, width=3.9, title="The error depends on the length of the path; loss and c_q do not show it"
    )
    for index, time in enumerate(results.times):
        for law, name in enumerate(LAWS):
            label = f"{name}, T = {time:g}"
            axes[0].plot(results.etas, results.rho[index, law].std(-1, ddof=1), "o-", label=label, markersize=4)
    axes[0].set(xscale="log", yscale="log", xlabel="interval η", ylabel="standard deviation of ρ̂")
    for law, name in enumerate(LAWS):
        axes[1].plot(TABLE, results.risk[law], label=name)
        axes[2].plot(TABLE, results.constant[law], label=name)
    axes[1].set(xscale="log", xlabel="interval η", ylabel="smallest squared loss ε*")
    axes[2].set(xscale="log", xlabel="interval η", ylabel="truncated log c_q")
    for rows in results.log_cosh:
        figures.band(axes[3], results.log_cosh_etas, rows.T)
    axes[3].set(xscale="log", yscale="log", xlabel="interval η", ylabel="average KL, log cosh (nats)")
    axes[0].legend(fontsize=8)
    axes[2].legend(fontsize=8)
    return figure
