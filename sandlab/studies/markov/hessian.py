"""Curvature of the loss at the bad stationary point: weight tying turns a saddle into a local minimum."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from sandlab import figures
from sandlab.circuits.markov.one_layer import marginal_predictor
from sandlab.learning.markov.one_layer import OneLayerMarkovTheory
from sandlab.lenses._flat import FlatLoss
from sandlab.lenses.curvature import hessian_spectrum
from sandlab.models.base import seeded
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOURCE = (
    "Makkuva et al. 2024, Attention with Markov: a framework for principled analysis of transformers via Markov chains"
)


@dataclass(frozen=True)
class Settings:
    """Chains (p, q); random draws of the free weights; words of `length` tokens are enumerated; width of the model."""

    seeds: int = 3
    slow: tuple[float, float] = (0.2, 0.3)
    fast: tuple[float, float] = (0.5, 0.8)
    length: int = 6
    width: int = 4
    init_std: float = 0.02
    curve: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.2, 1.4, 1.6, 1.8)


@dataclass(frozen=True)
class SpectrumJob:
    p: float
    q: float
    tied: bool
    whole: bool
    length: int
    width: int
    init_std: float
    seed: int


def exact_loss(p: float, q: float, length: int) -> Callable[[nn.Module], Tensor]:
    """The expected loss as a function of the model: all words of length + 1 tokens, weighted by their probability."""
    words = torch.tensor(list(itertools.product((0, 1), repeat=length + 1)))
    step = torch.tensor([[1 - p, p], [q, 1 - q]], dtype=torch.float64)
    start = torch.tensor([q, p], dtype=torch.float64) / (p + q)
    chance = start[words[:, 0]] * step[words[:, :-1], words[:, 1:]].prod(-1)

    def loss(model: nn.Module) -> Tensor:
        log_probs = model(words[:, :-1]).log_softmax(-1)
        return -(chance * log_probs.gather(-1, words[:, 1:, None]).squeeze(-1).mean(-1)).sum()

    return loss


def curvature(job: SpectrumJob) -> dict[str, Any]:
    """Every eigenvalue of the Hessian at the marginal, the gradient there, and the loss.

    `whole`: with attention, feed-forward and positions at small random weights; otherwise embedding, readout and bias
    alone. The feed-forward has no second derivative at 0 with ReLU, so it is GELU here.
    """
    parts: dict[str, Any] = {"mlp": "gelu"} if job.whole else {"attention": "none", "mlp": "none", "positions": False}
    with seeded(job.seed):
        model = marginal_predictor(
            job.p, job.q, length=job.length, width=job.width, tied=job.tied, init_std=job.init_std, **parts
        )
    loss = exact_loss(job.p, job.q, job.length)
    flat = FlatLoss(model, loss)
    point = flat.point.requires_grad_()
    value = flat(point)
    (gradient,) = torch.autograd.grad(value, point)
    spectrum = hessian_spectrum(model, loss, method="exact")
    return {"values": spectrum.values, "loss": value.item(), "gradient": float(gradient.abs().max())}


@study(
    "markov/hessian",
    title="Weight tying turns the marginal from a saddle into a local minimum",
    source=SOURCE,
    tour=True,
    quick=Settings(),
    full=Settings(seeds=8, length=8, width=8),
    claims=[
        Claim(
            "stationary",
            "At θ_π (zero embedding and readout, bias log(p/q)) the loss is H(π) and its gradient vanishes.",
            SOURCE,
            "largest gradient entry and distance of the loss from H(π), over chains, tying and weights",
            Below(1e-12),
            exact=True,
        ),
        Claim(
            "tied-minimum",
            "With tied weights and p + q > 1 the Hessian at θ_π has no negative eigenvalue.",
            SOURCE,
            "smallest eigenvalue of the tied transformer at p + q > 1",
            Above(-1e-10),
            paper="≥ 0",
            exact=True,
        ),
        Claim(
            "untied-saddle",
            "Without tying θ_π is a saddle for p + q > 1.",
            SOURCE,
            "smallest eigenvalue of the untied transformer at p + q > 1",
            Below(-1e-3),
            paper="< 0",
            exact=True,
        ),
        Claim(
            "tied-saddle",
            "With tied weights and p + q < 1 θ_π is a saddle as well.",
            SOURCE,
            "smallest eigenvalue of the tied transformer at p + q < 1",
            Below(-1e-3),
            paper="< 0",
            exact=True,
        ),
        Claim(
            "closed-form",
            "The curvature is 2π₀π₁(p + q − 1) in every direction of the tied embedding, ±π₀π₁(p + q − 1) in those of "
            "the untied one, and π₀π₁ in the bias.",
            SOURCE,
            "largest distance of an eigenvalue from its closed form (attention and feed-forward off)",
            Below(1e-10),
            exact=True,
        ),
    ],
)
def hessian(settings: Settings, lab: Lab) -> Outcome:
    """Tied and untied one-layer transformers share a bad stationary point; only the tied one is trapped there.

    At θ_π the embedding e and the readout a are zero and the bias is log(p/q): the model predicts the marginal
    π₁ = p/(p + q) whatever it sees, the loss is H(π) and every first derivative vanishes. The second derivatives decide
    what happens next. With attention and feed-forward off, and c = π₀π₁(p + q − 1):

    - tied (a = e): ∂²L/∂e² = 2c·1, a minimum for p + q > 1 and a saddle for p + q < 1;
    - untied: the (a, e) block is [[0, c·1], [c·1, 0]] with eigenvalues ±|c|, a saddle on both sides;
    - bias: ∂²L/∂b² = π₀π₁.

    With attention on, M = W_O W_V adds −mean_n (1/n) Σ_i π₀π₁λ^{n+1−i} (M + Mᵀ) to the tied block (attention is uniform
    where e = 0), so the statement about the minimum needs small value maps; usual initialisations are.

    **Set-up.** The expected loss is a sum over all words of 7 tokens (full: 9), each with its probability; Hessians by
    automatic differentiation in float64 and a symmetric eigensolver. Chains (0.2, 0.3) and (0.5, 0.8).

    **In the figure.** Left: all eigenvalues with their numbers. Most are zero ("almost" positive definite): where
    e = a = 0 most weights do nothing. Negative ones appear in every case but the tied one with p + q > 1. Right: the
    smallest eigenvalue along p = q, dots measured, lines from the closed form.
    """
    cases = [(chain, tied) for chain in (settings.slow, settings.fast) for tied in (True, False)]
    whole = [_job(settings, chain, tied, True, seed) for chain, tied in cases for seed in range(settings.seeds)]
    bare = [_job(settings, chain, tied, False, 0) for chain, tied in cases]
    along = [_job(settings, (s / 2, s / 2), tied, False, 0) for s in settings.curve for tied in (True, False)]
    found = lab.map(curvature, [*whole, *bare, *along], label="Hessians")
    on_whole, on_bare = found[: len(whole)], found[len(whole) : len(whole) + len(bare)]
    on_line = found[len(whole) + len(bare) :]
    smallest = {
        case: [run["values"][0] for job, run in zip(whole, on_whole) if ((job.p, job.q), job.tied) == case]
        for case in cases
    }
    still = [
        max(run["gradient"], abs(run["loss"] - OneLayerMarkovTheory(job.p, job.q).marginal_loss))
        for job, run in zip([*whole, *bare], [*on_whole, *on_bare])
    ]
    distances = [_distance(job, run["values"]) for job, run in zip([*bare, *along], [*on_bare, *on_line])]
    return Outcome(
        measurements={
            "stationary": max(still),
            "tied-minimum": smallest[settings.fast, True],
            "untied-saddle": smallest[settings.fast, False],
            "tied-saddle": smallest[settings.slow, True],
            "closed-form": max(distances),
        },
        figures={"spectra": spectra(settings, cases, on_whole[:: settings.seeds], on_line)},
        tables={
            "smallest eigenvalues": [
                {"p": p, "q": q, "tied": tied, "smallest": min(values), "zero": int((abs(run["values"]) < 1e-9).sum())}
                for ((p, q), tied), values, run in zip(smallest, smallest.values(), on_whole[:: settings.seeds])
            ]
        },
    )


def _job(settings: Settings, chain: tuple[float, float], tied: bool, whole: bool, seed: int) -> SpectrumJob:
    return SpectrumJob(*chain, tied, whole, settings.length, settings.width, settings.init_std, seed)


def _distance(job: SpectrumJob, values: np.ndarray) -> float:
    theory = OneLayerMarkovTheory(job.p, job.q)
    c, variance = theory.switching_slope, theory.ones * (1 - theory.ones)
    expected = [2 * c] * job.width if job.tied else [c] * job.width + [-c] * job.width
    return float(np.abs(values - np.sort([*expected, variance])).max())


def spectra(settings: Settings, cases: list[Any], runs: list[dict[str, Any]], on_line: list[dict[str, Any]]) -> Figure:
    """Sorted eigenvalues of the four cases, and the smallest one along p = q."""
    title = "At the marginal, only the tied model with p + q > 1 has no way down"
    figure, axes = figures.new(2, width=5.4, height=3.9, title=title)
    with figures.style():
        _rows(axes[0], cases, runs)
        total = np.linspace(0.02, 1.98, 200)
        slope = 0.25 * (total - 1)
        for tied, line, colour in ((True, 2 * slope, 1), (False, -abs(slope), 0)):
            name = "tied" if tied else "untied"
            axes[1].plot(
                total, np.minimum(line, 0.25), "-", color=figures.COLOURS[colour], label=f"{name}: closed form"
            )
            measured = [run["values"][0] for run in on_line[0 if tied else 1 :: 2]]
            axes[1].plot(settings.curve, measured, "o", color=figures.COLOURS[colour], label=f"{name}: measured")
        axes[1].axhline(0, color="black", linewidth=0.8)
        axes[1].axvline(1, color="#888888", linewidth=0.8, linestyle=":")
        axes[1].set(
            xlabel="p + q (with p = q)", ylabel="smallest eigenvalue", title="Embedding, readout and bias alone"
        )
        axes[1].legend(fontsize=8, loc="lower right")
    return figure


def _rows(axis: Axes, cases: list[Any], runs: list[dict[str, Any]]) -> None:
    """One row per case: each eigenvalue a dot, equal ones (to 0.005) joined with their number."""
    names = []
    for row, (((p, q), tied), run) in enumerate(zip(cases, runs)):
        names.append(f"{'tied' if tied else 'untied'}\np + q = {p + q:g}")
        values, groups = run["values"], np.round(run["values"] / 0.005)
        for group in np.unique(groups):
            members = values[groups == group]
            colour = figures.COLOURS[1] if members.mean() < -1e-9 else figures.COLOURS[0]
            if abs(members.mean()) < 1e-3:
                colour = figures.COLOURS[6]
            axis.plot(members.mean(), row, "o", markersize=7, color=colour)
            axis.annotate(
                f"×{len(members)}", (members.mean(), row), (0, 7), textcoords="offset points", ha="center", fontsize=8
            )
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_yticks(range(len(names)), names)
    axis.set(ylim=(len(names) - 0.5, -0.6), xlabel="eigenvalue", title="Hessian of the whole transformer")
