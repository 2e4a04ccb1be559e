"""Gradient flow of a one-layer transformer on a binary chain, reduced to a plane: energy, minima, basins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sandlab import figures
from sandlab.learning.markov.one_layer import SADDLE, SADDLE_ENERGY, OneLayerMarkovTheory, flow_energy
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.models.markov.one_layer import ThreeParameterMarkov
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim, Equals
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.markov.chain import MarkovChain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOURCE = "Makkuva et al. 2024, Local to Global: learning dynamics and effect of initialization for transformers"
STARTS = ((0.1, 0.1), (0.1, -0.1), (0.1, -1.0), (0.5, -1.5))
"""Starts (e, w) whose ends are known in closed form for (p, q) = (0.2, 0.3) and (0.8, 0.7)."""
RING = tuple((e, w) for e in (0.35, 0.9) for w in (-1.6, -1.1, -0.3, -0.15, 0.2, 0.6, 1.2))
"""Starts of the models that are trained on samples: on both sides of every border, none close to one."""


_BASIN = "#6aaed6"


@dataclass(frozen=True)
class Settings:
    """Chains (p, q) of the two portraits; grid × grid starts over [−span, span]²; Gaussian starts of deviation std."""

    seeds: int = 4
    slow: tuple[float, float] = (0.1, 0.1)
    fast: tuple[float, float] = (0.9, 0.9)
    grid: int = 60
    span: float = 3.0
    starts: int = 2000
    std: float = 0.1
    sgd_steps: int = 1200
    sgd_lr: float = 0.3


@dataclass(frozen=True)
class FlowJob:
    p: float
    q: float
    grid: int
    span: float
    starts: int
    std: float
    seed: int
    device: str


@dataclass(frozen=True)
class SampledJob:
    p: float
    q: float
    steps: int
    lr: float
    seed: int
    device: str


def follow(job: FlowJob) -> dict[str, Any]:
    """The flow from a grid of starts and from Gaussian starts near the origin."""
    theory = OneLayerMarkovTheory(job.p, job.q)
    line = torch.linspace(-job.span, job.span, job.grid, dtype=torch.float64, device=job.device)
    e, w = (part.flatten() for part in torch.meshgrid(line, line, indexing="ij"))
    on_grid = theory.flow(e, w)
    clear = (flow_energy(e, w) - SADDLE_ENERGY).abs() > 0.05
    agrees = on_grid.reached == theory.escapes(e, w)
    drawn = torch.randn(2, job.starts, generator=rng(job.seed, "starts"), dtype=torch.float64) * job.std
    near = theory.flow(*drawn.to(job.device))
    return {
        "reached": on_grid.reached.view(job.grid, job.grid).int().cpu().numpy(),
        "agreement": float(agrees[clear].double().mean()),
        "drift": float(on_grid.drift.max()),
        "near_origin": near.reached.int().cpu().numpy(),
    }


def follow_samples(job: SampledJob) -> dict[str, Any]:
    """Stochastic gradient descent of the three-parameter model on sampled chains, one member per start."""
    theory = OneLayerMarkovTheory(job.p, job.q)

    def factory(place: int) -> ThreeParameterMarkov:
        e, w = RING[place]
        # The best bias of the start, as in the reduced flow; the attention number stays at zero.
        bias = float(theory.best_offset(_gain(e, w))) + e**2 / 2
        model = ThreeParameterMarkov(embedding=e, feedforward=w, attention=0.0, bias=bias)
        model.attention.requires_grad_(False)
        return model

    population = Population(factory, seeds=range(len(RING))).to(job.device)
    path: list[np.ndarray] = []

    def keep(_step: int, model: Any, _metrics: Any) -> None:
        named = model.stacked
        path.append(torch.stack([named["embedding"], named["feedforward"]], -1).detach().cpu().numpy())

    train(
        population, MarkovChain.binary(job.p, job.q, length=128), steps=job.steps, batch_size=16,
        rng=rng(job.seed, "data", device=job.device), optimizer="sgd", lr=job.lr, every=max(1, job.steps // 60),
        callbacks=[keep], data="separate",
    )  # fmt: skip
    end = torch.from_numpy(path[-1]).double()
    reached = (_gain(end[:, 0], end[:, 1]) - theory.best_gain).abs() < 0.5 * abs(theory.best_gain)
    starts = torch.tensor(RING, dtype=torch.float64)
    predicted = theory.escapes(starts[:, 0], starts[:, 1])
    return {"path": np.stack(path), "as_predicted": (reached == predicted).int().numpy()}


def _gain(e: Any, w: Any) -> torch.Tensor:
    e, w = torch.as_tensor(e, dtype=torch.float64), torch.as_tensor(w, dtype=torch.float64)
    return e.square() * (1 + 2 * w * w.abs())


def known_ends() -> tuple[float, float]:
    """Largest distance of the final gain from its closed form, and largest energy drift, over the eight known runs."""
    apart, drift = 0.0, 0.0
    for p, q in ((0.2, 0.3), (0.8, 0.7)):
        theory = OneLayerMarkovTheory(p, q)
        e, w = torch.tensor(STARTS, dtype=torch.float64).T
        flow = theory.flow(e, w)
        escapes = torch.tensor([w > -0.5 for _, w in STARTS]) == (p + q < 1)
        expected = torch.where(escapes, theory.best_gain, 0.0)
        apart = max(apart, float((flow.gain - expected).abs().max()))
        drift = max(drift, float(flow.drift.max()))
    return apart, drift


@study(
    "markov/flow-portrait",
    title="One layer, three numbers: where gradient flow on a Markov chain ends",
    source=SOURCE,
    tour=True,
    quick=Settings(),
    full=Settings(seeds=16, grid=300, starts=20000, sgd_steps=3000),
    claims=[
        Claim(
            "energy",
            "The gradient flow of (e, w) conserves the energy e² − w² − sgn(w) log|w|.",
            SOURCE,
            "largest relative change of the energy along eight trajectories",
            Below(1e-4),
            exact=True,
        ),
        Claim(
            "ends",
            "Trajectories end either at gain log[(1−p)(1−q)/(pq)], a global minimum, or at gain 0, the marginal.",
            SOURCE,
            "largest distance of the final gain from its closed form over eight trajectories",
            Below(1e-3),
            exact=True,
        ),
        Claim(
            "basins",
            "Energy and the sign of w alone decide which start reaches a global minimum.",
            SOURCE,
            "share of grid starts (not within 0.05 of the border energy) whose end is as predicted",
            Equals(1.0, 0.0),
            exact=True,
        ),
        Claim(
            "small-init-slow",
            "For p + q < 1 small Gaussian initialisation leads to a global minimum.",
            SOURCE,
            "share of N(0, 0.1²) starts that reach it",
            Above(0.99),
            over="share",
        ),
        Claim(
            "small-init-fast",
            "For p + q > 1 small Gaussian initialisation gets stuck at the marginal.",
            SOURCE,
            "share of N(0, 0.1²) starts that reach a global minimum",
            Below(0.01),
            over="share",
        ),
        Claim(
            "samples",
            "Stochastic gradient descent on sampled chains ends where the flow's basins say.",
            SOURCE,
            "share of sampled runs, from starts on both sides of every border, that end as predicted",
            Above(0.9),
            over="share",
        ),
    ],
)
def flow_portrait(settings: Settings, lab: Lab) -> Outcome:
    """A one-layer transformer on a binary chain moves on a plane, and the plane has a map.

    Trained on a chain with P(1|0) = p and P(0|1) = q, the matrices of a one-layer transformer become rank one. What is
    left are the size e of the embedding, the size w of the feed-forward block and a bias; the log-odds of a 1 after
    token x are g·x + const with gain g = e²(1 + 2w|w|). With the best bias for each gain, the loss is a function ℓ(g)
    and the gradient flow reads

        ė = −ℓ'(g)·2e(1 + 2w|w|),    ẇ = −ℓ'(g)·4e²|w|.

    It conserves E = e² − w² − sgn(w) log|w|. Global minima form the curve e²(1 + 2w|w|) = log[(1−p)(1−q)/(pq)]; the
    line e = 0, on which the model predicts the marginal, attracts where (p + q − 1)(1 + 2w|w|) > 0. At (0, −1/√2) the
    two meet in a degenerate saddle of energy −½(1 + log 2) ≈ −0.847, whose level line borders the basins:

    - p + q < 1: every start with w > −1/√2 and e ≠ 0 reaches a global minimum, below that only those above the border;
    - p + q > 1: no start with w > 0 does; between −1/√2 and 0 those above the border do, and all below −1/√2.

    **Set-up.** Runge–Kutta integration with a step length of its own for every start, 60 × 60 starts over [−3, 3]²
    (full: 300 × 300), 2000 Gaussian starts per seed near the origin; the same three-parameter model trained on sampled
    chains (batch 16, length 128, learning rate 0.3) from 14 starts.

    **In the figure.** Shaded: starts that reach a global minimum. White lines: constant energy, along which everything
    moves. Thick: the global minima and the line of marginals. The small circle is where a usual initialisation begins:
    inside the basin on the left, outside on the right. Orange: training on samples.
    """
    chains = (settings.slow, settings.fast)
    flows = [
        FlowJob(p, q, settings.grid if seed == 0 else 2, settings.span, settings.starts, settings.std, seed, lab.device)
        for p, q in chains
        for seed in range(settings.seeds)
    ]
    runs = [
        SampledJob(p, q, settings.sgd_steps, settings.sgd_lr, seed, lab.device)
        for p, q in chains
        for seed in range(settings.seeds)
    ]
    followed = lab.map(follow, flows, label="gradient flow")
    sampled = lab.map(follow_samples, runs, label="training on samples")
    half = settings.seeds
    apart, drift = known_ends()
    return Outcome(
        measurements={
            "energy": drift,
            "ends": apart,
            "basins": [followed[0]["agreement"], followed[half]["agreement"]],
            "small-init-slow": np.concatenate([run["near_origin"] for run in followed[:half]]).tolist(),
            "small-init-fast": np.concatenate([run["near_origin"] for run in followed[half:]]).tolist(),
            "samples": np.concatenate([run["as_predicted"] for run in sampled]).tolist(),
        },
        figures={
            "portrait": portrait(
                settings,
                [followed[0]["reached"], followed[half]["reached"]],
                [sampled[0]["path"], sampled[half]["path"]],
            )
        },
    )


def portrait(settings: Settings, reached: list[np.ndarray], paths: list[np.ndarray]) -> Figure:
    """Basins, energy lines, minima and sampled runs, one panel per chain."""
    figure, axes = figures.new(
        2, width=5.2, height=4.8, title="Where gradient flow ends depends on p + q and on the start"
    )
    with figures.style():
        for axis, (p, q), basin, path in zip(axes, (settings.slow, settings.fast), reached, paths):
            _panel(axis, settings.span, OneLayerMarkovTheory(p, q), basin)
            for member in range(path.shape[1]):
                e, w = path[:, member, 0], path[:, member, 1]
                axis.plot(w, e, "-", color=figures.COLOURS[3], linewidth=1.3)
                axis.plot(w[0], e[0], "o", color=figures.COLOURS[3], markersize=3)
            axis.set_title(f"p = q = {p:g}: p + q {'<' if p + q < 1 else '>'} 1" if p == q else f"p = {p:g}, q = {q:g}")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return figure


def _panel(axis: Axes, span: float, theory: OneLayerMarkovTheory, basin: np.ndarray) -> None:
    line = np.linspace(-span, span, 121)
    w, e = np.meshgrid(line, line)
    e_t, w_t = torch.from_numpy(e), torch.from_numpy(w)
    axis.imshow(
        basin, origin="lower", extent=(-span, span, -span, span), cmap="Blues", vmin=-0.2, vmax=2.2, aspect="auto",
        interpolation="nearest", rasterized=True,
    )  # fmt: skip
    energy = flow_energy(e_t, w_t).numpy()
    axis.contour(w, e, energy, levels=np.arange(-6, 9, 1.5), colors="white", linewidths=0.7, linestyles="solid")
    # Right of w = 0 the same level is an ordinary trajectory, no border.
    border = np.where(w < -0.01, energy, np.nan)
    axis.contour(w, e, border, levels=[SADDLE_ENERGY], colors="#222222", linewidths=1.0, linestyles="dashed")
    gain = _gain(e_t, w_t).numpy()
    axis.contour(w, e, gain, levels=[theory.best_gain], colors=figures.COLOURS[1], linewidths=2.6, linestyles="solid")
    attracts = (theory.switching_slope * (1 + 2 * line * np.abs(line))) > 0
    axis.plot(np.where(attracts, line, np.nan), np.zeros_like(line), "-", color="black", linewidth=3)
    axis.plot([], [], "s", color=_BASIN, label="starts that reach a global minimum")
    axis.plot([], [], "-", color=figures.COLOURS[1], linewidth=2.6, label="global minima")
    axis.plot([], [], "-", color="black", linewidth=3, label="marginal, attracting")
    axis.plot([], [], "--", color="#222222", linewidth=1, label="energy of the saddle")
    axis.plot([], [], "-o", color=figures.COLOURS[3], markersize=3, label="training on samples")
    axis.plot(SADDLE, 0, "X", color="white", markeredgecolor="black", markersize=8)
    angle = np.linspace(0, 2 * np.pi, 60)
    axis.plot(0.2 * np.cos(angle), 0.2 * np.sin(angle), "-", color="black", linewidth=1)
    axis.grid(False)
    axis.set(xlim=(-span, span), ylim=(-span, span), xlabel="feed-forward size w", ylabel="embedding size e")
