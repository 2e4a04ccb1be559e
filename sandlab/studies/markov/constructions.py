"""Weights by hand: each circuit of the Markov chapter computes its counting estimator, with its error and its rate.

Each algorithm of the chapter as weights, compared with counting on random sequences, in float64. A tree's kernel
(`causal-graph-estimator`), several parents (`parent-heads-estimator`), the induction head (`induction-head`), contexts
of any order with one head per layer (`korder-three-layers`, `korder-two-layers`), and the pull-back that turns any
attention-only transformer into a disentangled one (`disentangle`). Roots, and the last position as a key, match
themselves unless the second layer is told not to; then the equality is exact. In addition the closed forms that the
chapter uses: χ² information of chains, Chow and Liu's tree, the entropy of random rows.

**In the figure.** Left: largest error of each circuit over alphabets; rounding is at the bottom. Right: error of the
three-layer circuit against κ · gap for orders 1 to 4, with the bound T e^{−κ·gap} (dotted): normalised contexts of
order k differ by an angle that shrinks like B^{−k}, and κ must make up for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.lenses.markov import exactness
from sandlab.studies.claims import Exact, Mean, Share
from sandlab.studies.study import Lab, Study

GRAPHS = "Nichani, Damian & Lee 2024, How transformers learn causal structure with gradient descent"
DEPTH = "Rajaraman et al. 2024, Transformers on Markov data: constant depth suffices"
EXPONENTS = np.array([2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0])
BOUNDS = 100 * np.exp(-EXPONENTS)


@dataclass(frozen=True)
class Settings:
    """Alphabets and orders of the circuits, sequences per comparison, seeds of what is sampled."""

    seeds: int = 5
    states: tuple[int, ...] = (2, 3, 4, 5)
    orders: tuple[int, ...] = (1, 2, 3, 4, 5)
    examples: int = 60
    kernels: int = 20_000


study = Study(
    "markov/constructions",
    title="Circuits of the Markov chapter, exact to rounding",
    source=f"{GRAPHS}; {DEPTH}",
    quick=Settings(),
    full=Settings(seeds=16, examples=400, kernels=200_000),
)


def circuit_errors(job: Settings) -> dict[str, float]:
    """Circuit → largest difference from what it should compute, where something matches, on one alphabet."""
    (states,), orders, examples = job.states, job.orders, job.examples
    return {
        "tree": max(exactness.tree_circuit_error(states, examples, seed) for seed in range(4)),
        "several parents": max(exactness.parents_circuit_error(states, order, examples) for order in orders),
        "induction head": exactness.induction_circuit_error(states, examples),
        "order k, 3 layers": max(exactness.korder_circuit_error(states, order, 3) for order in orders),
        "order k, 2 layers": max(exactness.korder_circuit_error(states, order, 2) for order in orders),
    }


def sharpness_errors(order: int) -> np.ndarray:
    return np.array([exactness.sharpness_error(order, exponent) for exponent in EXPONENTS.tolist()])


def row_entropies(job: tuple[int, int]) -> tuple[float, float]:
    return exactness.row_entropy_errors(*job)


@dataclass(frozen=True)
class Results:
    """errors: alphabet size → circuit → error; sharpness: order → errors; entropies: of blind and of visited rows."""

    errors: dict[int, dict[str, float]]
    sharpness: dict[int, np.ndarray]
    pull_back: list[float]
    two_states: list[float]
    edges: list[float]
    entropies: list[tuple[float, float]]

    def of(self, circuit: str) -> list[float]:
        return [found[circuit] for found in self.errors.values()]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [replace(settings, states=(states,)) for states in settings.states]
    orders = [order for order in settings.orders if order <= 4]
    return Results(
        errors=dict(zip(settings.states, lab.map(circuit_errors, jobs, label="circuits"))),
        sharpness=dict(zip(orders, lab.map(sharpness_errors, orders, label="sharpness"))),
        pull_back=lab.map(exactness.pull_back_error, (1, 2, 3), label="pull-back"),
        two_states=lab.map(exactness.two_state_error, range(1, 7), label="two-state chains"),
        edges=lab.map(exactness.recovered_edges, range(8), label="trees"),
        entropies=lab.map(row_entropies, [(settings.kernels, seed) for seed in range(settings.seeds)], label="rows"),
    )


@study.claim(Exact(below=1e-6), source=GRAPHS, paper="0")
def causal_graph(results: Results) -> list[float]:
    """Two layers read the kernel off any causal tree: copy the parent, compare, count.

    Largest difference from the counts along the edges, random trees, alphabets 2 to 5.
    """
    return results.of("tree")


@study.claim(Exact(below=1e-6), source=GRAPHS, paper="0")
def several_parents(results: Results) -> list[float]:
    """One first-layer head per parent does the same for up to five parents.

    Largest difference from the counts of equal configurations.
    """
    return results.of("several parents")


@study.claim(
    Exact(below=1e-6), source="Bietti et al. 2023; Sanford, Hsu & Telgarsky 2024", id="induction-head", paper="0"
)
def induction(results: Results) -> list[float]:
    """Two layers of one head, width O(1) and weights of O(log T) bits, are an induction head.

    Largest difference from the clamped order-1 estimator at every position.
    """
    return results.of("induction head")


@study.claim(Exact(below=1e-6), source=DEPTH, paper="0")
def three_layers(results: Results) -> list[float]:
    """Three layers of one head compute the estimator of any order.

    Largest difference from the strict estimator, orders 1 to 5, alphabets 2 to 5.
    """
    return results.of("order k, 3 layers")


@study.claim(Exact(below=1e-6), source="Ekbote et al. 2025", paper="0")
def two_layers(results: Results) -> list[float]:
    """So do two layers, when the feed-forward block extracts a digit.

    Largest difference from the strict estimator, orders 1 to 5, alphabets 2 to 5.
    """
    return results.of("order k, 2 layers")


@study.claim(Exact(below=1.0), source=DEPTH, paper="≤ 1")
def sharpness(results: Results) -> list[float]:
    """The error is at most T e^{−κ · gap}, gap the smallest angle between two contexts.

    Largest ratio of error to bound, orders 1 to 4.
    """
    return [float((values / BOUNDS)[BOUNDS > 1e-6].max()) for values in results.sharpness.values()]


@study.claim(Exact(below=1e-8), source=GRAPHS, at="Theorem 3", paper="0")
def disentangled(results: Results) -> list[float]:
    """Every attention-only transformer has a disentangled equal with the same layers and heads.

    Largest difference of logits, random weights, 1 to 3 layers.
    """
    return results.pull_back


@study.claim(Exact(below=1e-9), source=GRAPHS, paper="0")
def two_state_information(results: Results) -> list[float]:
    """In a stationary two-state chain the χ² information at lag d is λ^{2d}.

    Largest difference over random chains and lags 1 to 6.
    """
    return results.two_states


@study.claim(Share(above=0.5), source="Chow & Liu 1968", id="chow-liu")
def chow_liu_tree(results: Results) -> list[bool]:
    """Chow and Liu's tree of the χ² information of samples is the causal tree.

    Share of random trees all of whose edges are recovered from 20 000 sequences of a fixed kernel.
    """
    return [share == 1.0 for share in results.edges]


@study.claim(Mean(equals=0.0, within=0.01), source="closed form", paper="0")
def row_entropy(results: Results) -> list[float]:
    """A Dirichlet row has expected entropy ψ(Sα + 1) − ψ(α + 1).

    Mean over sampled rows minus the closed form, S = 3, α = ½.
    """
    return [blind for blind, _ in results.entropies]


@study.claim(Mean(below=0.0), source="this laboratory")
def visited_rows(results: Results) -> list[float]:
    """Rows that a chain visits have less entropy than rows drawn blindly.

    Entropy of the last token's row minus the closed form, S = 3, α = ½, length 64.
    """
    return [visited for _, visited in results.entropies]


@study.figure
def circuits(results: Results) -> Figure:
    figure, axes = figures.new(2, width=4.9, height=3.4, title="Circuits equal counting; sharper attention errs less")
    for states, found in results.errors.items():
        values = np.maximum(list(found.values()), 1e-17)
        axes[0].plot(values, range(len(found)), "o", markersize=5, label=f"{states} states")
        axes[0].set_yticks(range(len(found)), list(found))
    axes[0].axvline(1e-6, color="#555555", linestyle=":", linewidth=1)
    axes[0].set(xscale="log", xlabel="largest error", title="orders 1 to 5", xlim=(1e-17, 1e-5))
    axes[0].legend(fontsize=8)
    for order, errors in results.sharpness.items():
        axes[1].semilogy(EXPONENTS, np.maximum(errors, 1e-17), "o-", markersize=4, label=f"order {order}")
    axes[1].semilogy(EXPONENTS, BOUNDS, linestyle=":", color="#555555", label="T exp(−κ · gap)")
    axes[1].set(xlabel="κ · gap", ylabel="largest error", title="three layers, 3 states, T = 100")
    axes[1].legend(fontsize=8)
    return figure
