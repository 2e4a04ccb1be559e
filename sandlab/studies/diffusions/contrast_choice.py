"""The contrast law decides how well the kernel is learnt, and the loss does not tell.

Twelve contrast laws for the same OU process (η = ½, 10⁴ pairs, six quadratic features). The error grows with log c_q,
the truncated constant of eq. 2.4; the law with the smallest optimal loss, N(6, 1), gives the worst kernel.

The null shuffles the path: no law learns the kernel, and the order is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from sandlab import figures
from sandlab.learning.diffusions.classifiers import PolynomialLogit, fit_logit, read_ou
from sandlab.lenses.diffusions.kernels import contrast_constant, ou_kl, ou_optimal_risk
from sandlab.studies.claims import Mean, Ratio
from sandlab.studies.diffusions import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.diffusions.contrast import ContrastLaw, GaussianContrast, NearbyContrast, StationaryContrast
from sandlab.worlds.diffusions.pairs import make_pairs
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


@dataclass(frozen=True)
class Settings:
    """Length of the path and seeds; shuffled destroys its order (the null)."""

    time: float = 10_000.0
    seeds: int = 8
    shuffled: bool = False


@dataclass(frozen=True)
class Path:
    settings: Settings
    law: str
    seed: int


@dataclass(frozen=True)
class Results:
    """KL by (law, seed); truncated log c_q and ε* by law."""

    kl: np.ndarray
    constant: np.ndarray
    risk: np.ndarray


QUICK = Settings()
study = Study(
    "diffusions/contrast-choice",
    title="Kernels are learnt best from negatives that resemble positives; the loss misleads",
    source=shared.SOURCE,
    at="eq. 2.4",
    quick=QUICK,
    full=Settings(time=1e7, seeds=5),
    null=replace(QUICK, shuffled=True),
)


def fit(job: Path) -> float:
    rng, q = np.random.default_rng([job.seed, list(LAWS).index(job.law)]), LAWS[job.law]
    path = OrnsteinUhlenbeck().path(int(job.settings.time / 0.5), 0.5, rng)
    path = rng.permutation(path) if job.settings.shuffled else path
    found = fit_logit(make_pairs(path, q, rng), PolynomialLogit())
    theta, read = found.theta, read_ou(found, 0.5, q)
    if not np.isfinite(read["v"]):
        return WORST
    mean = q.mean if isinstance(q, GaussianContrast) else 0.0
    scale = read["v"] / (q.sd**2 if isinstance(q, GaussianContrast) else 1.0)
    shift = theta[2] * read["v"] + mean * scale  # the learnt intercept of E[x′ | x]; the truth is 0
    return min(ou_kl(read["a"], read["v"], 0.5) + shift**2 / (2 * read["v"]), WORST)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [Path(settings, law, seed) for law in LAWS for seed in range(settings.seeds)]
    kl = np.array(lab.map(fit, jobs)).reshape(len(LAWS), settings.seeds)
    return Results(
        kl,
        np.array([contrast_constant(q, 0.5) for q in LAWS.values()]),
        np.array([ou_optimal_risk(q, 0.5) for q in LAWS.values()]),
    )


def row(name: str) -> int:
    return list(LAWS).index(name)


@study.claim(Mean(above=0.5))
def error_follows_the_constant(results: Results) -> list[float]:
    """The error grows with c_q.

    Rank correlation of log c_q and log KL over the twelve laws, one value per seed (0.95 for medians over seeds).
    """
    return [float(spearmanr(results.constant, np.log(each)).statistic) for each in results.kl.T]


@study.claim(Ratio(above=5.0))
def shifted_by_two_is_worse(results: Results) -> np.ndarray:
    """Negatives two standard deviations away cost a factor of five.

    KL with N(2, 1) divided by KL with N(0, 2²), paired by seed.
    """
    return results.kl[row("N(2, 1)")] / results.kl[row("N(0, 2²)")]


@study.claim(Ratio(above=50.0))
def shifted_by_four_is_useless(results: Results) -> np.ndarray:
    """Four away cost a factor of fifty.

    KL with N(4, 1) divided by KL with π, paired by seed.
    """
    return results.kl[row("N(4, 1)")] / results.kl[row("π")]


@study.claim(Ratio(above=100.0))
def smallest_loss_is_the_worst_kernel(results: Results) -> np.ndarray:
    """The law with the smallest optimal loss gives the worst kernel.

    KL of the law with the smallest ε* divided by the smallest KL of the seed.
    """
    return results.kl[int(results.risk.argmin())] / results.kl.min(0)


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
