"""A contrastive classifier recovers the transition kernel of an Ornstein–Uhlenbeck process at every interval.

A single stationary path of length T is cut into pairs η apart; a logit with four quadratic features is fitted by the
squared loss. It realises the optimal classifier exactly, so that its error is that of estimation. One Euler step, whose
kernel is right for η → 0 only, is the baseline. How the error depends on η is the subject of
`diffusions/interval-sweep`, other dimensions of `diffusions/ou-dimensions`.

The null replaces every positive by a negative (the path is shuffled), so that no kernel can be learnt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.diffusions.classifiers import EvenLogit, KernelEstimate, LogitClassifier, read_ou
from sandlab.learning.diffusions.on_device import fit_logit_on
from sandlab.lenses.diffusions.kernels import euler_kl, ou_kl, ou_optimal_risk
from sandlab.studies.claims import Mean, Median
from sandlab.studies.diffusions import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.diffusions.contrast import ContrastLaw, GaussianContrast, NearbyContrast, StationaryContrast
from sandlab.worlds.diffusions.pairs import make_pairs
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck

ETAS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
LAWS = ("stationary", "N(0, 4)", "N(x, 2η)")
HALF = ETAS.index(0.5)


@dataclass(frozen=True)
class Settings:
    """Length of the path, and seeds; shuffled: the order of the path is destroyed (the null)."""

    time: float = 20_000.0
    seeds: int = 10
    shuffled: bool = False


@dataclass(frozen=True)
class Path:
    settings: Settings
    eta: float
    law: str
    seed: int
    device: str = "cpu"


@dataclass(frozen=True)
class Results:
    """Arrays over (contrast law, η, seed); risk: ε* over (law, η)."""

    kl: np.ndarray
    rho: np.ndarray
    loss: np.ndarray
    theta: np.ndarray
    risk: np.ndarray


QUICK = Settings()
study = Study(
    "diffusions/ou-kernel",
    title="A classifier of pairs knows the transition kernel, at intervals where Euler does not",
    source=shared.SOURCE,
    at="section 2.1",
    quick=QUICK,
    full=Settings(time=2e5, seeds=50),
    null=replace(QUICK, shuffled=True),
    tour=True,
)


def contrast(law: str, eta: float) -> ContrastLaw:
    laws = {"stationary": StationaryContrast(), "N(0, 4)": GaussianContrast(0.0, 2.0)}
    return laws.get(law) or NearbyContrast.natural(eta)


def fit(job: Path) -> np.ndarray:
    """KL, ρ̂, loss and the four coefficients of one path."""
    rng, q = np.random.default_rng([job.seed, round(1000 * job.eta), LAWS.index(job.law)]), contrast(job.law, job.eta)
    path = OrnsteinUhlenbeck().path(int(job.settings.time / job.eta) // 2 * 2, job.eta, rng)
    if job.settings.shuffled:
        path = rng.permutation(path)
    found = fit_logit_on(job.device, make_pairs(path, q, rng), EvenLogit())
    read = read_ou(found, job.eta, q)
    kl = ou_kl(read["a"], read["v"], job.eta) if np.isfinite(read["v"]) else np.inf
    return np.array([kl, read["rho"], found.loss, *found.theta])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    seeds, device = range(settings.seeds), lab.device
    jobs = [Path(settings, eta, law, seed, device) for law in LAWS for eta in ETAS for seed in seeds]
    found = np.array(lab.map(fit, jobs)).reshape(len(LAWS), len(ETAS), settings.seeds, 7)
    risk = np.array([[ou_optimal_risk(contrast(law, eta), eta) for eta in ETAS] for law in LAWS])
    return Results(found[..., 0], found[..., 1], found[..., 2], found[..., 3:], risk)


@study.claim(Median(below=1e-3))
def small_kl(results: Results) -> np.ndarray:
    """At η = ½ the kernel is right to a thousandth of a nat.

    Average KL of the kernel with the stationary contrast.
    """
    return results.kl[0, HALF]


@study.claim(Median(below=0.05))
def far_below_euler(results: Results) -> np.ndarray:
    """It is twenty times nearer than one Euler step.

    KL of the kernel divided by that of the Euler kernel (0.0511), η = ½.
    """
    return results.kl[0, HALF] / euler_kl(0.5)


@study.claim(Mean(equals=1.0, within=0.05))
def drift_is_right(results: Results) -> np.ndarray:
    """The drift read off the classifier is the true one.

    ρ̂ at η = ½, stationary contrast; the truth is 1.
    """
    return results.rho[0, HALF]


@study.claim(Mean(equals=0.0, within=0.005))
def loss_is_optimal(results: Results) -> np.ndarray:
    """The training loss is the smallest possible.

    Training loss minus ε* = 0.2233, η = ½, stationary contrast.
    """
    return results.loss[0, HALF] - results.risk[0, HALF]


@study.figure
def kernels(results: Results) -> Figure:
    figure, (left, middle, right) = figures.new(3, title="Pairs half a unit apart give the kernel; Euler's is too wide")
    grid, q = np.linspace(-3.5, 3.5, 200), StationaryContrast()
    model = KernelEstimate(LogitClassifier(EvenLogit(), results.theta[0, HALF, 0], 0.0).logit, q)
    for z, colour in zip((-2.0, -1, 0, 1, 2), figures.COLOURS):
        start = np.full((200, 1), z)
        left.plot(grid, np.exp(model.log_density(start, grid[:, None])), color=colour, linestyle="-")
        truth = OrnsteinUhlenbeck().log_kernel(start, grid[:, None], 0.5)
        left.plot(grid, np.exp(truth), ":", color="black", linewidth=1)
    left.set(xlabel="x′", ylabel="density given x", title="learnt (lines), true (dots)")
    for index, law in enumerate(LAWS):
        figures.band(middle, ETAS, np.minimum(results.kl[index].T, 10), law)
        right.plot(ETAS, results.risk[index], label=law)
    middle.plot(ETAS, [euler_kl(eta) for eta in ETAS], color="black", linestyle=":", label="one Euler step")
    middle.set(xscale="log", yscale="log", xlabel="interval η", ylabel="average KL (nats)")
    right.set(xscale="log", xlabel="interval η", ylabel="smallest squared loss ε*")
    middle.legend(fontsize=8)
    return figure


@study.figure
def heat_maps(results: Results) -> Figure:
    figure, axes = figures.new(
        3, title="Log density of x′ given x, half a unit later: the learnt kernel is the true one"
    )
    grid = np.linspace(-3, 3, 61)
    z, later = (np.broadcast_to(each[..., None], (61, 61, 1)) for each in (grid[:, None], grid[None]))
    learnt = LogitClassifier(EvenLogit(), results.theta[0, HALF, 0], 0.0).logit
    logs = [
        OrnsteinUhlenbeck().log_kernel(z, later, 0.5),
        KernelEstimate(learnt, StationaryContrast()).log_density(z, later),
    ]
    for axis, values, title in zip(axes, logs, ("true", "learnt")):
        figures.heatmap(axis, values.T[::-1], title=title, x="x", y="x′", low=-8, high=0)
    figures.heatmap(
        axes[2], (logs[1] - logs[0]).T[::-1], title="difference", x="x", y="x′", low=-0.5, high=0.5, cmap="RdBu"
    )
    for axis in axes:
        axis.set_xticks([0, 30, 60], ["−3", "0", "3"])
        axis.set_yticks([0, 30, 60], ["3", "0", "−3"])
    return figure
