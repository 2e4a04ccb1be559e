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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import one_hot

from sandlab import figures
from sandlab.circuits.markov.causal_graphs import causal_graph_estimator, parent_heads_estimator
from sandlab.circuits.markov.induction import induction_head
from sandlab.circuits.markov.korder import context_gap, korder_three_layers, korder_two_layers, with_start_token
from sandlab.circuits.markov.pull_back import disentangle
from sandlab.lenses.markov.dependence import chain_chi_square
from sandlab.models.base import seeded
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.study import Lab, Study
from sandlab.worlds.markov._walk import dirichlet_rows, walk_graph
from sandlab.worlds.markov.causal_graphs import InContextDag, InContextTree, lag_parents, random_parents
from sandlab.worlds.markov.chain import InContextMarkov, MarkovChain
from sandlab.worlds.markov.structure import chow_liu, position_information
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams

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


@dataclass(frozen=True)
class CircuitJob:
    states: int
    orders: tuple[int, ...]
    examples: int


def circuit_errors(job: CircuitJob) -> dict[str, float]:
    """Circuit → largest difference from what it should compute, where something matches."""
    states, examples = job.states, job.examples
    tokens = torch.randint(0, states, (examples, 64), generator=rng(states, "induction"))
    counts = CountingEstimator(states, (1,), boundary="clamped").counts(tokens)
    return {
        "tree": max(_tree_error(states, examples, seed) for seed in range(4)),
        "several parents": max(_parents_error(states, order, 20 + 8 * order, examples) for order in job.orders),
        "induction head": _error(induction_head(states, 64)(tokens).softmax(-1), counts),
        "order k, 3 layers": max(_korder_error(korder_three_layers, states, order) for order in job.orders),
        "order k, 2 layers": max(_korder_error(korder_two_layers, states, order) for order in job.orders),
    }


def _error(probs: Tensor, counts: Tensor) -> float:
    total = counts.sum(-1, keepdim=True)
    distance = (probs.detach() - counts / total.clamp(min=1)).abs().amax(-1)
    return float(distance[total.squeeze(-1) > 0].max())


def _tree_error(states: int, examples: int, seed: int) -> float:
    tree = InContextTree(states, random_parents(24, seed), concentration=1.0)
    tokens = tree.sample(examples, rng=rng(seed, "tree")).inputs
    return _error(causal_graph_estimator(states, tree.parents)(tokens)[:, -1].exp(), tree.edge_counts(tokens))


def _parents_error(states: int, order: int, length: int, examples: int) -> float:
    """One head per parent against the counts of all children but the last, whose history gave way to the query."""
    graph = InContextDag(states, lag_parents(length, tuple(range(1, order + 1))), concentration=0.1)
    tokens = graph.sample(examples, rng=rng(order, "parents")).inputs
    children = graph.children[:-1]
    match = graph.configurations(tokens, children) == graph.configurations(tokens, [length])
    counts = (one_hot(tokens[:, children], states) * match.unsqueeze(-1)).sum(1).double()
    return _error(parent_heads_estimator(states, graph.parents)(tokens)[:, -1].exp(), counts)


def _korder_error(circuit: Callable[[int, int, int], Transformer], states: int, order: int) -> float:
    tokens = InContextNgrams(states, 1, 120, 1.0).sample(12, rng=rng(order, "korder")).inputs
    probs = circuit(states, order, 120)(with_start_token(tokens, states))[:, 1:].softmax(-1)
    return _error(probs, CountingEstimator.of_order(states, order).counts(tokens))


def sharpness_errors(order: int) -> np.ndarray:
    """Error of the three-layer circuit at each of EXPONENTS = κ · gap, 3 states and length 100."""
    tokens = InContextNgrams(3, 1, 100, 1.0).sample(40, rng=rng(order, "sharpness")).inputs
    counts = CountingEstimator.of_order(3, order).last_counts(tokens)
    gap, inputs = context_gap(order, 3.0), with_start_token(tokens, 3)
    models = [korder_three_layers(3, order, 100, sharpness=exponent / gap) for exponent in EXPONENTS.tolist()]
    return np.array([_error(model(inputs)[:, -1].softmax(-1), counts) for model in models])


def pull_back_error(seed: int) -> float:
    """Largest difference of logits between a random attention-only transformer and its disentangled equal."""
    tokens = torch.randint(0, 4, (40, 8), generator=rng(0, "pull back"))
    heads, head_width = ((2,), (3, 1), (1, 1, 1))[seed], (None, 4, None)[seed]
    with seeded(seed):
        model = Transformer(
            vocab=4, length=8, width=6, layers=len(heads), heads=heads, head_width=head_width, mlp="none", norm="none",
            init_std=0.6,
        ).double()  # fmt: skip
    return float((model(tokens) - disentangle(model)(tokens)).detach().abs().max())


def two_state_error(lag: int) -> float:
    """Largest distance of the χ² information of random two-state chains from λ^{2·lag}."""
    p, q = torch.rand(2, 50, generator=rng(0, "binary"), dtype=torch.float64)
    kernels = torch.stack([torch.stack([1 - p, p], -1), torch.stack([q, 1 - q], -1)], -2)
    return float((chain_chi_square(kernels, lag) - (1 - p - q) ** (2 * lag)).abs().max())


def largest_increase(states: int) -> float:
    """Largest increase of the χ² information from one lag to the next, over random chains."""
    kernels = dirichlet_rows((25, states, states), 0.5, rng=rng(states, "chains"))
    return float(torch.stack([chain_chi_square(kernels, lag) for lag in range(1, 7)]).diff(dim=0).max())


def recovered_edges(seed: int) -> float:
    """Share of the edges of a random tree that Chow and Liu's tree of 20 000 samples has, whatever their direction."""
    parents = [max(parent, 0) if child else -1 for child, parent in enumerate(random_parents(10, seed))]
    kernel, draws = MarkovChain.random(3, 1, seed=seed, concentration=0.5).table, rng(seed, "chow liu")
    tokens = torch.zeros(20_000, len(parents), dtype=torch.int64)
    tokens[:, 0] = torch.randint(0, 3, (20_000,), generator=draws)
    plan = [(child, (parent,)) for child, parent in enumerate(parents) if parent >= 0]
    tokens = walk_graph(kernel.unsqueeze(0), tokens, plan, rng=draws)
    tree = chow_liu(position_information(tokens, 3, "chi-square"))
    found, true = ({frozenset(edge) for edge in enumerate(each) if edge[1] >= 0} for each in (tree, parents))
    return len(found & true) / len(true)


def row_entropies(job: tuple[int, int]) -> tuple[float, float]:
    """(number of rows, seed) → mean entropy of rows drawn blindly, and of last tokens' rows, minus the closed form."""
    count, seed = job
    world = InContextMarkov(3, 1, 64, concentration=0.5)
    blind = dirichlet_rows((count, 3), 0.5, rng=rng(seed, "rows"))
    visited = world.next_probs(world.sample(count // 10, rng=rng(seed, "visited")))[:, -1]
    first, second = (float(torch.special.entr(rows).sum(-1).mean()) for rows in (blind, visited))
    return first - world.expected_row_entropy(), second - world.expected_row_entropy()


@dataclass(frozen=True)
class Results:
    """errors: alphabet size → circuit → error; sharpness: order → errors; entropies: of blind and of visited rows."""

    errors: dict[int, dict[str, float]]
    sharpness: dict[int, np.ndarray]
    pull_back: list[float]
    two_states: list[float]
    increases: list[float]
    edges: list[float]
    entropies: list[tuple[float, float]]

    def of(self, circuit: str) -> list[float]:
        return [found[circuit] for found in self.errors.values()]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [CircuitJob(states, settings.orders, settings.examples) for states in settings.states]
    orders = [order for order in settings.orders if order <= 4]
    return Results(
        errors=dict(zip(settings.states, lab.map(circuit_errors, jobs, label="circuits"))),
        sharpness=dict(zip(orders, lab.map(sharpness_errors, orders, label="sharpness"))),
        pull_back=lab.map(pull_back_error, range(3), label="pull-back"),
        two_states=lab.map(two_state_error, range(1, 7), label="two-state chains"),
        increases=lab.map(largest_increase, range(2, 6), label="information"),
        edges=lab.map(recovered_edges, range(4), label="trees"),
        entropies=lab.map(row_entropies, [(settings.kernels, seed) for seed in range(settings.seeds)], label="rows"),
    )


@study.claim(Exact(below=1e-6), source=GRAPHS)
def causal_graph(results: Results) -> list[float]:
    """Two layers read the kernel off any causal tree: copy the parent, compare, count.

    Largest difference from the counts along the edges, random trees, alphabets 2 to 5.
    """
    return results.of("tree")


@study.claim(Exact(below=1e-6), source=GRAPHS)
def several_parents(results: Results) -> list[float]:
    """One first-layer head per parent does the same for up to five parents.

    Largest difference from the counts of equal configurations.
    """
    return results.of("several parents")


@study.claim(Exact(below=1e-6), source="Bietti et al. 2023; Sanford, Hsu & Telgarsky 2024", id="induction-head")
def induction(results: Results) -> list[float]:
    """Two layers of one head, width O(1) and weights of O(log T) bits, are an induction head.

    Largest difference from the clamped order-1 estimator at every position.
    """
    return results.of("induction head")


@study.claim(Exact(below=1e-6), source=DEPTH)
def three_layers(results: Results) -> list[float]:
    """Three layers of one head compute the estimator of any order.

    Largest difference from the strict estimator, orders 1 to 5, alphabets 2 to 5.
    """
    return results.of("order k, 3 layers")


@study.claim(Exact(below=1e-6), source="Ekbote et al. 2025")
def two_layers(results: Results) -> list[float]:
    """So do two layers, when the feed-forward block extracts a digit.

    Largest difference from the strict estimator, orders 1 to 5, alphabets 2 to 5.
    """
    return results.of("order k, 2 layers")


@study.claim(Exact(below=1.0), source=DEPTH)
def sharpness(results: Results) -> list[float]:
    """The error is at most T e^{−κ · gap}, gap the smallest angle between two contexts.

    Largest ratio of error to bound, orders 1 to 4.
    """
    return [float((values / BOUNDS)[BOUNDS > 1e-6].max()) for values in results.sharpness.values()]


@study.claim(Exact(below=1e-8), source=GRAPHS, at="Theorem 3")
def disentangled(results: Results) -> list[float]:
    """Every attention-only transformer has a disentangled equal with the same layers and heads.

    Largest difference of logits, random weights, 1 to 3 layers.
    """
    return results.pull_back


@study.claim(Exact(below=1e-9), source=GRAPHS)
def two_state_information(results: Results) -> list[float]:
    """In a stationary two-state chain the χ² information at lag d is λ^{2d}.

    Largest difference over random chains and lags 1 to 6.
    """
    return results.two_states


@study.claim(Exact(below=1e-12), source=f"{GRAPHS} (data processing)")
def information_falls(results: Results) -> list[float]:
    """χ² information never increases with the lag.

    Largest increase from one lag to the next, 100 random chains of 2 to 5 states.
    """
    return results.increases


@study.claim(Exact(equals=1.0, within=0.0), source="Chow & Liu 1968", id="chow-liu")
def chow_liu_tree(results: Results) -> list[float]:
    """Chow and Liu's tree of the χ² information of samples is the causal tree.

    Share of edges recovered from 20 000 sequences of a fixed kernel, random trees.
    """
    return results.edges


@study.claim(Mean(equals=0.0, within=0.01), source="closed form")
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
    """Errors by circuit and alphabet, and the error of the three-layer circuit by sharpness."""
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
