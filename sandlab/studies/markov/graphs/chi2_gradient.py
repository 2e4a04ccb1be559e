"""The first gradient of the first layer is, position by position, the χ² information of the data.

Why gradient descent finds the graph: the first layer's gradient measures χ² information. For two positions,
I_χ²(s_i; s_j) = Σ_{a,b} P(a, b)²/(P(a)P(b)) − 1. Averaged over the random kernels of the data, the lemma says that
−∂L/∂A¹[i, j] ≈ const · E I_χ²(s_i; s_j) for long sequences. Information never increases along the edges of the graph
(data processing), so among all earlier positions the parent has the most, the gradient step raises its attention most,
and the softmax does the rest: Chow and Liu's tree, learnt by descent.

**Set-up.** Two-layer disentangled transformer with A¹ = 0, A² = β₀ between the last token and the key's parent block
(β₀ = 0.1), a readout of counts with log(· + 10⁻³), S = 3 states, T = 10 positions, kernels Dirichlet(0.5); the gradient
is a mean over 2¹⁷ sequences per seed (full: 2²⁰). χ² information is exact for each kernel (powers of the kernel along
the paths of the tree), averaged over 2000 kernels.

**What was learnt.** The condition on A² is needed: with A¹ = A² = 0 the first layer's gradient is exactly zero. At
this length only the largest entry of each row agrees with the information; the order of the others does not (their
signs alternate), so the lemma's proportionality is a statement about long sequences.

**In the figure.** Left: the descent direction, each row scaled to its largest entry. Right: the χ² information. Rings
mark the parents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.markov.layerwise import first_layer_descent
from sandlab.lenses.markov.dependence import points_at_parent, tree_chi_square
from sandlab.random import rng
from sandlab.studies.claims import Exact, Share
from sandlab.studies.markov.graphs._shared import FAMILIES, SOURCE, ring
from sandlab.studies.study import Lab, Study
from sandlab.worlds.markov._walk import dirichlet_rows
from sandlab.worlds.markov.causal_graphs import InContextTree

SHOWN = ("chain", "random")


@dataclass(frozen=True)
class Settings:
    """T and α of the data (S = 3 states); β₀ of the second layer; sequences per seed."""

    seeds: int = 6
    length: int = 10
    concentration: float = 0.5
    temperature: float = 0.1
    sequences: int = 2**17


study = Study(
    "markov/chi2-gradient",
    title="The first gradient step already points at the parents",
    source=f"{SOURCE}, §5 (Lemma 1)",
    quick=Settings(),
    full=Settings(seeds=16, sequences=2**20),
    null=Settings(temperature=0.0),  # the second layer compares nothing
)


@dataclass(frozen=True)
class GradientJob:
    world: InContextTree
    temperature: float
    sequences: int
    seed: int
    device: str


def first_gradient(job: GradientJob) -> np.ndarray:
    """−∂L/∂A¹ (query position × key position) at A¹ = 0, A² = β₀·1 between tokens, counts as output."""
    draws = rng(job.seed, "gradient", device=job.device)
    return first_layer_descent(job.world, job.temperature, job.sequences, rng=draws).numpy()


def expected_information(world: InContextTree) -> np.ndarray:
    """E I_χ² between every pair of positions, over 2000 random kernels."""
    kernels = dirichlet_rows((2000, world.states, world.states), world.concentration, rng=rng(0, "kernels"))
    return tree_chi_square(kernels, world.parents).mean(0).numpy()


@dataclass(frozen=True)
class Graph:
    """One graph: the descent direction of each seed, the one with A² = 0, and the χ² information."""

    parents: tuple[int, ...]
    descent: list[np.ndarray]
    without_second_layer: np.ndarray
    information: np.ndarray

    def points_at_parent(self, table: np.ndarray) -> list[bool]:
        return points_at_parent(torch.from_numpy(table), self.parents)


@dataclass(frozen=True)
class Results:
    graphs: list[Graph]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    worlds = [InContextTree(3, FAMILIES[name](settings.length), settings.concentration) for name in SHOWN]
    information, found = lab.map(expected_information, worlds, label="information"), []
    for world, table in zip(worlds, information):
        first = GradientJob(world, settings.temperature, settings.sequences, 0, lab.device)
        jobs = [replace(first, seed=seed) for seed in range(settings.seeds)]
        *descent, off = lab.map(first_gradient, [*jobs, replace(first, temperature=0.0)], label="gradients")
        found.append(Graph(world.parents, descent, off, table))
    return Results(found)


@study.claim(Share(above=0.95), id="points-at-parent")
def towards_parent(results: Results) -> list[bool]:
    """At A¹ = 0 the descent direction of the first layer is largest at the parent, for every position.

    Share of (seed, position) pairs, over a chain and a random tree, whose largest entry is the parent's.
    """
    return [hit for graph in results.graphs for rows in graph.descent for hit in graph.points_at_parent(rows)]


@study.claim(
    Exact(equals=0.0, within=1e-6), source="this laboratory; the source's stage-wise algorithm switches A² on first"
)
def needs_second_layer(results: Results) -> float:
    """Before the second layer compares tokens (A² = 0) the first layer has no gradient at all.

    Largest entry of |∂L/∂A¹| at A¹ = A² = 0, relative to the one with A² on.
    """
    return max(np.abs(each.without_second_layer).max() / np.abs(each.descent[0]).max() for each in results.graphs)


@study.figure
def gradient(results: Results) -> Figure:
    title = "Largest where the information is largest: at the parent"
    figure, axes = figures.new(2, 2, width=4.3, height=3.6, title=title)
    for row, (name, graph) in enumerate(zip(SHOWN, results.graphs)):
        earlier = np.tri(len(graph.parents), k=-1) > 0
        rows, table = (np.where(earlier, each, np.nan)[1:-1, :-2] for each in (graph.descent[0], graph.information))
        scaled = rows / np.nanmax(np.abs(rows), axis=1, keepdims=True)
        titles = (f"{name}: −∂L/∂A¹, each row scaled", f"{name}: E I_χ²")
        for axis, values, label in zip(axes[2 * row :], (scaled, table), titles):
            figures.heatmap(axis, values, title=label, x="earlier position", y="position")
            axis.set_yticks(range(len(values)), [str(position) for position in range(1, len(values) + 1)])
            edges = [(child, parent) for child, parent in enumerate(graph.parents[:-1]) if parent >= 0]
            ring(axis, edges, size=9, first=1)
    return figure
