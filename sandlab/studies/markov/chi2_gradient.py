"""The first gradient of the first layer is, position by position, the χ² information of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sandlab import figures
from sandlab.learning.objectives import member_loss
from sandlab.lenses.markov.dependence import tree_chi_square
from sandlab.random import rng
from sandlab.studies.claims import Above, Claim, Equals
from sandlab.studies.markov.graph_runs import family, matching_model
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.markov._walk import dirichlet_rows
from sandlab.worlds.markov.causal_graphs import InContextTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Nichani, Damian & Lee 2024, How transformers learn causal structure with gradient descent, §5 (Lemma 1)"
FAMILIES = ("chain", "random")


@dataclass(frozen=True)
class Settings:
    """S, T, α of the data; β₀ of the second layer; ε in the logarithm of the loss; sequences per seed."""

    seeds: int = 6
    states: int = 3
    length: int = 10
    concentration: float = 0.5
    temperature: float = 0.1
    floor: float = 1e-3
    sequences: int = 2**17


@dataclass(frozen=True)
class GradientJob:
    parents: tuple[int, ...]
    settings: Settings
    seed: int
    device: str
    second_layer: bool = True


def first_gradient(job: GradientJob) -> dict[str, Any]:
    """−∂L/∂A¹ (query position × key position) at A¹ = 0, A² = β₀·1 between tokens, counts as output."""
    settings = job.settings
    world = InContextTree(settings.states, job.parents, settings.concentration)
    temperature = settings.temperature if job.second_layer else 0.0
    model = matching_model(settings.states, world.length, temperature, settings.floor).to(job.device)
    weight = model.get_parameter("layers.0.attention.weight")
    generator = rng(job.seed, "gradient", device=job.device)
    chunk = min(2**13, settings.sequences)
    total, rounds = torch.zeros_like(weight), settings.sequences // chunk
    for _ in range(rounds):
        batch = world.sample(chunk, rng=generator)
        (gradient,) = torch.autograd.grad(member_loss(model(batch.inputs), batch), weight)
        total += gradient
    block = slice(settings.states, None)
    descent = -(total / rounds)[0, block, block].cpu().double().numpy()
    return {"descent": descent, "points_at_parent": _points_at_parent(descent, job.parents)}


def _points_at_parent(rows: np.ndarray, parents: tuple[int, ...]) -> list[float]:
    """For every position with a parent: whether the largest entry among earlier positions is the parent's."""
    return [
        float(np.argmax(rows[child, :child]) == parent)
        for child, parent in enumerate(parents[:-1])
        if parent >= 0 and child >= 2
    ]


@study(
    "markov/chi2-gradient",
    title="The first gradient step already points at the parents",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=16, sequences=2**20),
    claims=[
        Claim(
            "points-at-parent",
            "At A¹ = 0 the descent direction of the first layer is largest at the parent, for every position.",
            SOURCE,
            "share of (seed, position) pairs, over a chain and a random tree, whose largest entry is the parent's",
            Above(0.95),
            over="share",
        ),
        Claim(
            "information",
            "χ² information is largest between a position and its parent (data processing).",
            SOURCE,
            "share of positions whose largest I_χ² among earlier positions is the parent's",
            Equals(1.0, 0.0),
            exact=True,
        ),
        Claim(
            "needs-second-layer",
            "Before the second layer compares tokens (A² = 0) the first layer has no gradient at all.",
            "this laboratory; the source's stage-wise algorithm switches A² on first",
            "largest entry of |∂L/∂A¹| at A¹ = A² = 0, relative to the one with A² on",
            Equals(0.0, 1e-6),
            exact=True,
        ),
    ],
)
def chi2_gradient(settings: Settings, lab: Lab) -> Outcome:
    """Why gradient descent finds the graph: the first layer's gradient measures χ² information.

    For two positions, I_χ²(s_i; s_j) = Σ_{a,b} P(a, b)²/(P(a)P(b)) − 1. Averaged over the random kernels of the data,
    the lemma says that −∂L/∂A¹[i, j] ≈ const · E I_χ²(s_i; s_j) for long sequences. Information can only fall along the
    edges of the graph (data processing), so among all earlier positions the parent has the most, the gradient step
    raises its attention most, and the softmax does the rest: Chow and Liu's tree, learnt by descent.

    **Set-up.** Two-layer disentangled transformer with A¹ = 0, A² = β₀ between the last token and the key's parent
    block (β₀ = 0.1), a readout of counts with log(· + 10⁻³), S = 3 states, T = 10 positions, kernels Dirichlet(0.5);
    the gradient is a mean over 2¹⁷ sequences per seed (full: 2²⁰). χ² information is exact for each kernel (powers of
    the kernel along the paths of the tree), averaged over 2000 kernels.

    **What was learnt.** The condition on A² is needed: with A¹ = A² = 0 the first layer's gradient is exactly zero. At
    this length only the largest entry of each row agrees with the information; the order of the others does not (their
    signs alternate), so the lemma's proportionality is a statement about long sequences.

    **In the figure.** Left: the descent direction, each row scaled to its largest entry. Right: the χ² information.
    Rings mark the parents.
    """
    graphs = [family(name, settings.length) for name in FAMILIES]
    jobs = [GradientJob(graph, settings, seed, lab.device) for graph in graphs for seed in range(settings.seeds)]
    off = [GradientJob(graph, settings, 0, lab.device, second_layer=False) for graph in graphs]
    found = lab.map(first_gradient, [*jobs, *off], label="gradients")
    on, without = found[: len(jobs)], found[len(jobs) :]
    kernels = dirichlet_rows((2000, settings.states, settings.states), settings.concentration, rng=rng(0, "kernels"))
    information = [tree_chi_square(kernels, graph).mean(0).numpy() for graph in graphs]
    ratio = max(
        np.abs(none["descent"]).max() / np.abs(some["descent"]).max()
        for none, some in zip(without, on[:: settings.seeds])
    )
    return Outcome(
        measurements={
            "points-at-parent": [value for run in on for value in run["points_at_parent"]],
            "information": [
                float(np.mean(_points_at_parent(table, graph))) for table, graph in zip(information, graphs)
            ],
            "needs-second-layer": float(ratio),
        },
        figures={"gradient": gradient_figure(graphs, on[:: settings.seeds], information)},
    )


def gradient_figure(graphs: list[tuple[int, ...]], runs: list[dict[str, Any]], information: list[np.ndarray]) -> Figure:
    """Descent direction beside χ² information, a row per graph; parents are ringed."""
    title = "Largest where the information is largest: at the parent"
    figure, axes = figures.new(2, 2, width=4.3, height=3.6, title=title)
    with figures.style():
        for row, (name, graph, run, table) in enumerate(zip(FAMILIES, graphs, runs, information)):
            for axis, values, label in (
                (axes[2 * row], run["descent"], f"{name}: −∂L/∂A¹, each row scaled"),
                (axes[2 * row + 1], table, f"{name}: E I_χ²"),
            ):
                shown = np.where(np.tri(len(graph), k=-1) > 0, values, np.nan)[1:-1, :-2]
                if values is not table:
                    shown = shown / np.nanmax(np.abs(shown), axis=1, keepdims=True)
                figures.heatmap(axis, shown, title=label, x="earlier position", y="position")
                axis.set_yticks(range(shown.shape[0]), [str(place + 1) for place in range(shown.shape[0])])
                children = [(child, parent) for child, parent in enumerate(graph[:-1]) if parent >= 0]
                axis.plot(
                    [parent for _, parent in children], [child - 1 for child, _ in children], "o", color="none",
                    markeredgecolor=figures.COLOURS[1], markersize=9, markeredgewidth=1.8,
                )  # fmt: skip
    return figure
