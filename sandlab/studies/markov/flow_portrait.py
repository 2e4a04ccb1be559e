"""Gradient flow of a one-layer transformer on a binary chain, reduced to a plane: energy, minima, basins.

Trained on a chain with P(1|0) = p and P(0|1) = q, the matrices of a one-layer transformer become rank one. What is
left are the size e of the embedding, the size w of the feed-forward block and a bias; the log-odds of a 1 after token x
are g·x + const with gain g = e²(1 + 2w|w|). With the best bias for each gain, the loss is a function ℓ(g) and the
gradient flow reads

    ė = −ℓ'(g)·2e(1 + 2w|w|),    ẇ = −ℓ'(g)·4e²|w|.

It conserves E = e² − w² − sgn(w) log|w|. Global minima form the curve e²(1 + 2w|w|) = log[(1−p)(1−q)/(pq)]; the line
e = 0, on which the model predicts the marginal, attracts where (p + q − 1)(1 + 2w|w|) > 0. At (0, −1/√2) the two meet
in a degenerate saddle of energy −½(1 + log 2) ≈ −0.847, whose level line borders the basins:

- p + q < 1: every start with w > −1/√2 and e ≠ 0 reaches a global minimum, below that only those above the border;
- p + q > 1: no start with w > 0 does; between −1/√2 and 0 those above the border do, and all below −1/√2.

**Set-up.** Runge–Kutta integration with a separate step length for every start, 60 × 60 starts over [−3, 3]² (full:
300 × 300), 2000 Gaussian starts per seed near the origin; the same three-parameter model trained on sampled chains
(batch 16, length 128, learning rate 0.3) from 14 starts.

**In the figure.** Shaded: starts that reach a global minimum. White lines: constant energy, along which everything
moves. Thick: the global minima and the line of marginals. The small circle is where a usual initialisation begins:
inside the basin on the left, outside on the right. Orange: training on samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.learning.markov.one_layer import SADDLE, SADDLE_ENERGY, Basin, OneLayerMarkovTheory, flow_energy, flow_gain
from sandlab.models.markov.one_layer import ThreeParameterMarkovConfig
from sandlab.random import rng
from sandlab.studies.claims import Exact, Share
from sandlab.studies.markov._shared import LOCAL_TO_GLOBAL
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Study
from sandlab.worlds.markov.chain import MarkovChain

KNOWN = ((0.1, 0.1), (0.1, -0.1), (0.1, -1.0), (0.5, -1.5))
"""Starts (e, w) whose ends are known in closed form for (p, q) = (0.2, 0.3) and (0.8, 0.7)."""
STARTS = tuple((e, w) for e in (0.35, 0.9) for w in (-1.6, -1.1, -0.3, -0.15, 0.2, 0.6, 1.2))
"""Starts of the models that are trained on samples: on both sides of every border, none close to one."""
SPAN, STD = 3.0, 0.1  # the grid of starts covers [−SPAN, SPAN]²; Gaussian starts have this deviation


def sampled(p: float, q: float, steps: int, seeds: int) -> tuple[Experiment, ...]:
    """The three-parameter model on samples of a chain, from each of STARTS with its best bias, without attention."""
    theory, found = OneLayerMarkovTheory(p, q), []
    for e, w in STARTS:
        bias = float(theory.best_offset(flow_gain(torch.tensor(e), torch.tensor(w)))) + e**2 / 2
        model = ThreeParameterMarkovConfig(embedding=e, feedforward=w, attention=0.0, bias=bias)
        training = Training(steps, batch_size=16, lr=0.3, optimizer="sgd", evals=60, eval_examples=16)
        world = MarkovChain.binary(p, q, length=128)
        found.append(Experiment(world, model, training, seeds, probes=(sizes,), prepare=freeze_attention))
    return tuple(found)


def freeze_attention(model: nn.Module) -> None:
    model.get_parameter("attention").requires_grad_(False)


def sizes(now: Snapshot) -> dict[str, Tensor]:
    """(e, w) of every member: "path"."""
    return {"path": torch.stack([now.model.stacked["embedding"], now.model.stacked["feedforward"]], -1)}


@dataclass(frozen=True)
class Settings:
    """Chains (p, q) of the two portraits; grid × grid starts of the flow, and Gaussian ones for each seed; training on
    samples from each of STARTS, first on the slow chain, then on the fast one."""

    slow: tuple[float, float]
    fast: tuple[float, float]
    samples: tuple[Experiment, ...]
    seeds: int = 4
    grid: int = 60
    starts: int = 2000


SLOW, FAST = (0.1, 0.1), (0.9, 0.9)
study = Study(
    "markov/flow-portrait",
    title="One layer, three numbers: where gradient flow on a Markov chain ends",
    source=LOCAL_TO_GLOBAL,
    tour=True,
    quick=Settings(SLOW, FAST, sampled(*SLOW, 1200, seeds=4) + sampled(*FAST, 1200, seeds=4)),
    full=Settings(
        SLOW, FAST, sampled(*SLOW, 3000, seeds=16) + sampled(*FAST, 3000, seeds=16), seeds=16, grid=300, starts=20000
    ),
    # The chains exchanged, and no training on samples.
    null=untrained(Settings(FAST, SLOW, sampled(*FAST, 1200, seeds=4) + sampled(*SLOW, 1200, seeds=4))),
)


@dataclass(frozen=True)
class FlowJob:
    """The flow on one chain from a number of starts (per side of the grid, or Gaussian ones)."""

    p: float
    q: float
    count: int
    device: str
    seed: int = 0


def follow_grid(job: FlowJob) -> Basin:
    return OneLayerMarkovTheory(job.p, job.q).basin(job.count, SPAN, job.device)


def follow_gaussian(job: FlowJob) -> np.ndarray:
    """Whether each start reaches a global minimum."""
    e, w = torch.randn(2, job.count, generator=rng(job.seed, "starts"), dtype=torch.float64).to(job.device) * STD
    return OneLayerMarkovTheory(job.p, job.q).flow(e, w).reached.cpu().numpy()


def known_ends(chain: tuple[float, float]) -> tuple[float, float]:
    """Over the KNOWN starts: the largest distance of the final gain from its closed form, the largest energy drift."""
    theory = OneLayerMarkovTheory(*chain)
    e, w = torch.tensor(KNOWN, dtype=torch.float64).T
    flow = theory.flow(e, w)
    expected = torch.where((w > -0.5) == (sum(chain) < 1), theory.best_gain, 0.0)
    return float((flow.gain - expected).abs().max()), float(flow.drift.max())


@dataclass(frozen=True)
class Portrait:
    """One chain: the basin; whether the Gaussian starts of all seeds reach a minimum; runs from each of STARTS."""

    p: float
    q: float
    basin: Basin
    small_init: np.ndarray
    samples: list[Runs]

    @property
    def theory(self) -> OneLayerMarkovTheory:
        return OneLayerMarkovTheory(self.p, self.q)

    @property
    def as_predicted(self) -> list[bool]:
        """Whether each run on samples ends where the flow's basin says."""
        found, best = [], self.theory.best_gain
        for start, runs in zip(torch.tensor(STARTS, dtype=torch.float64), self.samples):
            end = torch.from_numpy(runs.metrics["path"][:, -1]).double()
            reached = (flow_gain(end[:, 0], end[:, 1]) - best).abs() < 0.5 * abs(best)
            found += (reached == self.theory.escapes(start[0], start[1])).tolist()
        return found


@dataclass(frozen=True)
class Results:
    slow: Portrait
    fast: Portrait
    known: list[tuple[float, float]]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    samples = lab.train(settings.samples, label="training on samples")
    portraits = []
    for chain, runs in ((settings.slow, samples[: len(STARTS)]), (settings.fast, samples[len(STARTS) :])):
        (basin,) = lab.map(follow_grid, [FlowJob(*chain, settings.grid, lab.device)], label="flow from a grid")
        jobs = [FlowJob(*chain, settings.starts, lab.device, seed) for seed in range(settings.seeds)]
        reached = lab.map(follow_gaussian, jobs, label="flow from small weights")
        portraits.append(Portrait(*chain, basin, np.concatenate(reached), runs))
    known = lab.map(known_ends, [(0.2, 0.3), (0.8, 0.7)], label="known trajectories")
    return Results(portraits[0], portraits[1], known)


@study.claim(Exact(below=1e-4), paper="0")
def energy(results: Results) -> float:
    """The gradient flow of (e, w) conserves the energy e² − w² − sgn(w) log|w|.

    Largest relative change of the energy along eight trajectories.
    """
    return max(drift for _, drift in results.known)


@study.claim(Exact(below=1e-3), paper="0")
def ends(results: Results) -> float:
    """Trajectories end either at gain log[(1−p)(1−q)/(pq)], a global minimum, or at gain 0, the marginal.

    Largest distance of the final gain from its closed form over eight trajectories.
    """
    return max(distance for distance, _ in results.known)


@study.claim(Exact(equals=1.0, within=0.0), paper="1")
def basins(results: Results) -> list[float]:
    """Energy and the sign of w alone decide which start reaches a global minimum.

    Share of grid starts (not within 0.05 of the border energy) whose end is as predicted.
    """
    return [results.slow.basin.agreement, results.fast.basin.agreement]


@study.claim(Share(above=0.99))
def small_init_slow(results: Results) -> np.ndarray:
    """For p + q < 1 small Gaussian initialisation leads to a global minimum.

    Share of N(0, 0.1²) starts that reach it.
    """
    return results.slow.small_init


@study.claim(Share(below=0.01))
def small_init_fast(results: Results) -> np.ndarray:
    """For p + q > 1 small Gaussian initialisation gets stuck at the marginal.

    Share of N(0, 0.1²) starts that reach a global minimum.
    """
    return results.fast.small_init


@study.claim(Share(above=0.9))
def samples(results: Results) -> list[bool]:
    """Stochastic gradient descent on sampled chains ends where the flow's basins say.

    Share of sampled runs, from starts on both sides of every border, that end as predicted.
    """
    return [*results.slow.as_predicted, *results.fast.as_predicted]


@study.figure
def portrait(results: Results) -> Figure:
    title = "Where gradient flow ends depends on p + q and on the start"
    figure, axes = figures.new(2, width=5.2, height=4.8, title=title)
    for axis, each in zip(axes, (results.slow, results.fast)):
        _basins(axis, each)
        for runs in each.samples:
            e, w = runs.metrics["path"][0].T
            axis.plot(w, e, "-", color=figures.COLOURS[3], linewidth=1.3)
            axis.plot(w[0], e[0], "o", color=figures.COLOURS[3], markersize=3)
        axis.set_title(f"p = {each.p:g}, q = {each.q:g}: p + q {'<' if each.p + each.q < 1 else '>'} 1")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return figure


def _basins(axis: Axes, portrait: Portrait) -> None:
    theory, extent = portrait.theory, (-SPAN, SPAN, -SPAN, SPAN)
    line = np.linspace(-SPAN, SPAN, 121)
    w, e = np.meshgrid(line, line)
    energies, gains = (values(torch.from_numpy(e), torch.from_numpy(w)).numpy() for values in (flow_energy, flow_gain))
    axis.imshow(
        portrait.basin.reached.int(), origin="lower", extent=extent, cmap="Blues", vmin=-0.2, vmax=2.2, aspect="auto",
        interpolation="nearest", rasterized=True,
    )  # fmt: skip
    axis.contour(w, e, energies, levels=np.arange(-6, 9, 1.5), colors="white", linewidths=0.7, linestyles="solid")
    # Right of w = 0 the same level is an ordinary trajectory, no border.
    border = np.where(w < -0.01, energies, np.nan)
    axis.contour(w, e, border, levels=[SADDLE_ENERGY], colors="#222222", linewidths=1.0, linestyles="dashed")
    red = figures.COLOURS[1]
    axis.contour(w, e, gains, levels=[theory.best_gain], colors=red, linewidths=2.6, linestyles="solid")
    attracts = (theory.switching_slope * (1 + 2 * line * np.abs(line))) > 0
    axis.plot(np.where(attracts, line, np.nan), np.zeros_like(line), "-", color="black", linewidth=3)
    axis.plot([], [], "s", color="#6aaed6", label="starts that reach a global minimum")
    axis.plot([], [], "-", color=red, linewidth=2.6, label="global minima")
    axis.plot([], [], "-", color="black", linewidth=3, label="marginal, attracting")
    axis.plot([], [], "--", color="#222222", linewidth=1, label="energy of the saddle")
    axis.plot([], [], "-o", color=figures.COLOURS[3], markersize=3, label="training on samples")
    axis.plot(SADDLE, 0, "X", color="white", markeredgecolor="black", markersize=8)
    angle = np.linspace(0, 2 * np.pi, 60)
    axis.plot(0.2 * np.cos(angle), 0.2 * np.sin(angle), "-", color="black", linewidth=1)
    axis.grid(False)
    axis.set(xlim=extent[:2], ylim=extent[2:], xlabel="feed-forward size w", ylabel="embedding size e")
