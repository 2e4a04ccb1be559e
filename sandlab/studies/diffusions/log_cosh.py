"""A small network learns a kernel that is not Gaussian, from pairs alone.

Langevin diffusion over ½ρx² + (α/β) log cosh βx (ρ = ½, α = β = 2), pairs half a unit apart, negatives N(0, (1.5 sd)²),
an MLP 2-64-64-2 with tanh. The truth is an exact grid chain. The learnt kernel is compared with three that need no
pairs: the stationary law, the best linear-Gaussian kernel, and one Euler step; and the squared loss of the source with
cross-entropy. Full: 10⁷ pairs and a larger network, and the double well in the plane, whose kernel is a product. Pairs
are simulated and kept on the device that trains.

Full has the specification's pairs and network; 2500 steps of 16 384 pairs pass over the stored pairs four times.

The null does not train the network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.diffusions.classifiers import KernelEstimate
from sandlab.learning.diffusions.networks import ContrastiveSquares, network_logit
from sandlab.learning.experiment import Experiment, Training
from sandlab.lenses.diffusions.kernels import kernel_metrics, optimal_risk, sampled_kl
from sandlab.models.mlp import MLPConfig
from sandlab.studies.claims import Exact, Mean, NotMeasured
from sandlab.studies.diffusions import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.diffusions._device import SimulatedPairs
from sandlab.worlds.diffusions.contrast import GaussianContrast
from sandlab.worlds.diffusions.grid import GridChain
from sandlab.worlds.diffusions.pairs import ContrastivePairs
from sandlab.worlds.diffusions.potentials import DoubleWell, LogCosh
from sandlab.worlds.diffusions.processes import Langevin, euler_kernel

ETA = 0.5
CHAIN = GridChain(LogCosh(), 5.0, 500)
CHAPMAN = tuple(range(2, 11))
LOSSES = ("squared", "cross-entropy")
PLANE = ContrastivePairs(Langevin(DoubleWell(coordinates=2), reach=4.0), GaussianContrast(0.0, 2.0), ETA)


@dataclass(frozen=True)
class Settings:
    """Size of the data (chains × blocks pairs), network and training; plane_steps: of the double well (0: left out)."""

    seeds: int = 4
    chains: int = 4000
    blocks: int = 25
    hidden: tuple[int, ...] = (64, 64)
    training: Training = field(
        default_factory=lambda: Training(
            steps=4000, batch_size=1000, lr=3e-3, optimizer="adam", schedule="cosine", evals=4
        )
    )
    plane_steps: int = 0


@dataclass(frozen=True)
class Results:
    """Metrics of every (loss, seed); exact KL of the baselines; kernels on a coarse grid; KL in the plane by seed."""

    metrics: dict[str, np.ndarray]
    baselines: dict[str, float]
    risk: float
    kernel: np.ndarray
    plane: np.ndarray
    plane_baselines: dict[str, float]


QUICK = Settings()
study = Study(
    "diffusions/log-cosh",
    title="A network that tells pairs apart knows a kernel that is not Gaussian",
    source=shared.SOURCE,
    at="section 2.1",
    quick=QUICK,
    full=Settings(
        chains=400_000,
        hidden=(512,) * 4,
        training=replace(QUICK.training, steps=2500, batch_size=16_384, lr=1e-3, precision="tf32"),
        plane_steps=2500,
    ),
    null=replace(QUICK, seeds=3, training=replace(QUICK.training, steps=1, lr=0.0)),
)


def law() -> ContrastivePairs:
    return ContrastivePairs(Langevin(LogCosh(), reach=5.0, inner=0.002), GaussianContrast(0.0, 1.5 * CHAIN.sd), ETA)


def experiment(settings: Settings, loss: str, seed: int, pairs: ContrastivePairs) -> Experiment:
    training = replace(settings.training, objective=ContrastiveSquares() if loss == "squared" else "cross-entropy")
    model = MLPConfig(
        features=2 * pairs.process.dimensions, hidden=settings.hidden, outputs=2, activation="tanh", init_std=None
    )
    return Experiment(SimulatedPairs(pairs, settings.chains, settings.blocks, seed), model, training, seeds=(seed,))


def baseline_kernels() -> dict[str, np.ndarray]:
    """Cell masses of the kernels that need no pairs."""
    x, pi, truth = CHAIN.x, CHAIN.stationary, CHAIN.kernel(ETA)
    slope = float(pi * x @ (truth @ x) / (pi @ x**2))
    spread = float(pi @ (truth @ x**2) - slope**2 * (pi @ x**2))
    gauss = np.exp(-((x[None] - slope * x[:, None]) ** 2) / (2 * spread)) / math.sqrt(2 * math.pi * spread)
    z, later = (np.broadcast_to(each[..., None], (len(x), len(x), 1)) for each in (x[:, None], x[None]))
    euler = np.exp(euler_kernel(LogCosh(), z, later, ETA))
    stationary = np.broadcast_to(pi, truth.shape)
    return {"linear Gaussian": gauss * CHAIN.width, "stationary law": stationary, "one Euler step": euler * CHAIN.width}


def measured(estimate: np.ndarray) -> dict[str, float]:
    return kernel_metrics(CHAIN.kernel(ETA), estimate, CHAIN.stationary, CHAIN.x, ETA, CHAPMAN)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    cells = [(loss, seed) for loss in LOSSES for seed in range(settings.seeds)]
    jobs = [experiment(settings, loss, seed, law()) for loss, seed in cells]
    runs = lab.train(jobs, label="networks", weights=True)
    kernels = [
        KernelEstimate(network_logit(run.model(job.model, 0).to(lab.device)), law().q).on_grid(CHAIN.x, CHAIN.width)
        for run, job in zip(runs, jobs)
    ]
    rows = [measured(each) for each in kernels]
    metrics = {name: np.array([row[name] for row in rows]).reshape(2, settings.seeds) for name in rows[0]}
    q = np.exp(law().q.log_pdf(CHAIN.x[:, None], CHAIN.x[:, None]))[None] * CHAIN.width
    plane, plane_baselines = in_the_plane(settings, lab)
    return Results(
        metrics,
        {name: measured(each)["avg_kl"] for name, each in baseline_kernels().items()},
        optimal_risk(CHAIN.kernel(ETA), q, CHAIN.stationary),
        np.stack([CHAIN.kernel(ETA), kernels[0]])[:, 100:400:4, 100:400:4] / CHAIN.width,
        plane,
        plane_baselines,
    )


def in_the_plane(settings: Settings, lab: Lab) -> tuple[np.ndarray, dict[str, float]]:
    """KL of networks on the double well in two dimensions, and that of the stationary law (by quadrature)."""
    if not settings.plane_steps:
        return np.zeros(0), {}
    training = replace(settings.training, steps=settings.plane_steps)
    jobs = [experiment(replace(settings, training=training), "squared", seed, PLANE) for seed in range(settings.seeds)]
    runs = lab.train(jobs, label="the plane", weights=True)
    kl = [
        sampled_kl(PLANE, network_logit(run.model(job.model, 0).to(lab.device)), np.random.default_rng(seed), 100_000)
        for seed, (run, job) in enumerate(zip(runs, jobs))
    ]
    line = GridChain(DoubleWell(), 4.0, 400)
    truth = np.maximum(line.kernel(ETA), 1e-300)
    alone = float(line.stationary @ (truth * np.log(truth / line.stationary)).sum(1))
    return np.array(kl), {"stationary law": 2 * alone}


@study.claim(Mean(below=5e-3))
def small_kl(results: Results) -> np.ndarray:
    """The network's kernel is right to five thousandths of a nat.

    Average KL with the squared loss, by seed.
    """
    return results.metrics["avg_kl"][0]


@study.claim(Mean(below=0.5))
def half_of_the_linear_kernel(results: Results) -> np.ndarray:
    """It is twice as near as the best linear-Gaussian kernel.

    KL with the squared loss divided by that of the linear-Gaussian kernel (0.0137).
    """
    return results.metrics["avg_kl"][0] / results.baselines["linear Gaussian"]


@study.claim(Exact(above=0.0))
def order_of_the_baselines(results: Results) -> list[float]:
    """The linear kernel is better than the stationary law, which is better than an Euler step.

    Differences of KL between consecutive baselines.
    """
    return np.diff(
        [results.baselines[name] for name in ("linear Gaussian", "stationary law", "one Euler step")]
    ).tolist()


@study.claim(Mean(below=0.05))
def nearly_normalised(results: Results) -> np.ndarray:
    """What the classifier implies is nearly a probability kernel.

    Root mean square of mass − 1 over x, by seed.
    """
    return results.metrics["mass_rms"][0]


@study.claim(Mean(below=1.0), presets=("full",))
def plane_is_learnt(results: Results) -> np.ndarray:
    """In the plane, too, the network beats the stationary law.

    KL of the network divided by that of the stationary law, double well in two dimensions.
    """
    if not len(results.plane):
        raise NotMeasured("the double well in the plane was left out")
    return results.plane / results.plane_baselines["stationary law"]


@study.table
def distances(results: Results) -> Rows:
    rows = [
        {
            "kernel": f"network, {loss} loss",
            **{name: float(values[i].mean()) for name, values in results.metrics.items()},
        }
        for i, loss in enumerate(LOSSES)
    ]
    return rows + [{"kernel": name, "avg_kl": value} for name, value in results.baselines.items()]


@study.figure
def kernels(results: Results) -> Figure:
    figure, axes = figures.new(3, title="The learnt kernel (log density) is the true one where the process lives")
    logs = np.log(np.maximum(results.kernel, 1e-6))
    low, high = -8.0, float(logs.max())
    for axis, values, title in zip(axes, logs, ("true", "learnt")):
        figures.heatmap(axis, values.T[::-1], title=title, x="x", y="x′", low=low, high=high)
    figures.heatmap(
        axes[2], (logs[1] - logs[0]).T[::-1], title="difference", x="x", y="x′", low=-2, high=2, cmap="RdBu"
    )
    for axis in axes:
        axis.set_xticks([0, 37, 74], ["−3", "0", "3"])
        axis.set_yticks([0, 37, 74], ["3", "0", "−3"])
    return figure


@study.figure
def chapman_kolmogorov(results: Results) -> Figure:
    figure, (left, right) = figures.new(2, title="Repeated steps of the learnt kernel stay near the truth")
    for index, loss in enumerate(LOSSES):
        curves = np.stack([results.metrics[f"ck_error_{n}"][index] for n in CHAPMAN], 1)
        figures.band(left, CHAPMAN, curves, f"{loss} loss")
    left.set(xlabel="number of steps", ylabel="total variation to the true law")
    left.legend()
    names = [f"network, {loss}" for loss in LOSSES] + list(results.baselines)
    values = [*results.metrics["avg_kl"].mean(1), *results.baselines.values()]
    right.barh(names[::-1], values[::-1], color=figures.COLOURS[0])
    right.set(xscale="log", xlabel="average KL (nats)")
    return figure
