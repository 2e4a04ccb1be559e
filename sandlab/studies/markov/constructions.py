"""Weights by hand: each circuit of the Markov chapter computes its counting estimator, with its error and its rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sandlab import figures
from sandlab.circuits.markov.causal_graphs import causal_graph_estimator, parent_heads_estimator
from sandlab.circuits.markov.induction import induction_head
from sandlab.circuits.markov.korder import context_gap, korder_three_layers, korder_two_layers, with_start_token
from sandlab.circuits.markov.pull_back import disentangle
from sandlab.lenses.markov.dependence import chain_chi_square
from sandlab.models.base import seeded
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Below, Claim, Equals
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.markov._walk import dirichlet_rows
from sandlab.worlds.markov.causal_graphs import InContextDag, InContextTree, lag_parents, random_parents
from sandlab.worlds.markov.chain import InContextMarkov, MarkovChain
from sandlab.worlds.markov.structure import chow_liu, position_information
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRAPHS = "Nichani, Damian & Lee 2024, How transformers learn causal structure with gradient descent"
DEPTH = "Rajaraman et al. 2024, Transformers on Markov data: constant depth suffices"
EXPONENTS = (2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0)


@dataclass(frozen=True)
class Settings:
    """Alphabets and orders of the circuits, sequences per comparison, seeds of what is sampled."""

    seeds: int = 5
    states: tuple[int, ...] = (2, 3, 4, 5)
    orders: tuple[int, ...] = (1, 2, 3, 4, 5)
    examples: int = 60
    kernels: int = 20_000


@dataclass(frozen=True)
class CircuitJob:
    states: int
    orders: tuple[int, ...]
    examples: int


def circuit_errors(job: CircuitJob) -> dict[str, float]:
    """Largest difference of each circuit from what it should compute, where something matches."""
    states, examples = job.states, job.examples
    found = {"tree": 0.0, "parents": 0.0, "three": 0.0, "two": 0.0}
    for seed in range(4):
        tree = InContextTree(states, random_parents(24, seed), concentration=1.0)
        tokens = tree.sample(examples, rng=rng(seed, "tree")).inputs
        law = causal_graph_estimator(states, tree.parents)(tokens)[:, -1].exp()
        found["tree"] = max(found["tree"], _gap(law, tree.edge_counts(tokens)))
    for order in job.orders:
        length = 20 + 8 * order
        found["parents"] = max(found["parents"], _parents_gap(states, order, length, examples))
        tokens = InContextNgrams(states, 1, 120, 1.0).sample(12, rng=rng(order, "korder")).inputs
        counts = CountingEstimator.of_order(states, order).counts(tokens)
        for name, make in (("three", korder_three_layers), ("two", korder_two_layers)):
            law = make(states, order, 120)(with_start_token(tokens, states))[:, 1:].softmax(-1)
            found[name] = max(found[name], _gap(law, counts))
    tokens = torch.randint(0, states, (examples, 64), generator=rng(states, "induction"))
    counts = CountingEstimator(states, (1,), boundary="clamped").counts(tokens)
    return found | {"induction": _gap(induction_head(states, 64)(tokens).softmax(-1), counts)}


def _gap(law: torch.Tensor, counts: torch.Tensor) -> float:
    total = counts.sum(-1, keepdim=True)
    apart = (law.detach() - counts / total.clamp(min=1)).abs().amax(-1)
    return float(apart[total.squeeze(-1) > 0].max())


def _parents_gap(states: int, order: int, length: int, examples: int) -> float:
    """One head per parent against the counts of all children but the last, whose history gave way to the query."""
    graph = InContextDag(states, lag_parents(length, tuple(range(1, order + 1))), concentration=0.1)
    tokens = graph.sample(examples, rng=rng(order, "parents")).inputs
    children = graph.children[:-1]
    match = graph.configurations(tokens, children) == graph.configurations(tokens, [length])
    followers = torch.nn.functional.one_hot(tokens[:, children], states)
    counts = (followers * match.unsqueeze(-1)).sum(1).double()
    return _gap(parent_heads_estimator(states, graph.parents)(tokens)[:, -1].exp(), counts)


@study(
    "markov/constructions",
    title="Circuits of the Markov chapter, exact to rounding",
    source=f"{GRAPHS}; {DEPTH}",
    quick=Settings(),
    full=Settings(seeds=16, examples=400, kernels=200_000),
    claims=[
        Claim(
            "causal-graph",
            "Two layers read the kernel off any causal tree: copy the parent, compare, count.",
            GRAPHS,
            "largest difference from the counts along the edges, random trees, alphabets 2 to 5",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "several-parents",
            "One first-layer head per parent does the same for up to five parents.",
            GRAPHS,
            "largest difference from the counts of equal configurations",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "induction-head",
            "Two layers of one head, width O(1) and weights of O(log T) bits, are an induction head.",
            "Bietti et al. 2023; Sanford, Hsu & Telgarsky 2024",
            "largest difference from the clamped order-1 estimator at every position",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "three-layers",
            "Three layers of one head compute the estimator of any order.",
            DEPTH,
            "largest difference from the strict estimator, orders 1 to 5, alphabets 2 to 5",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "two-layers",
            "So do two layers, when the feed-forward block extracts a digit.",
            "Ekbote et al. 2025",
            "largest difference from the strict estimator, orders 1 to 5, alphabets 2 to 5",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "sharpness",
            "The error is at most T e^{−κ · gap}, gap the smallest angle between two contexts.",
            DEPTH,
            "largest ratio of error to bound, orders 1 to 4",
            Below(1.0),
            exact=True,
        ),
        Claim(
            "disentangled",
            "Every attention-only transformer has a disentangled equal with the same layers and heads.",
            f"{GRAPHS}, Theorem 3",
            "largest difference of logits, random weights, 1 to 3 layers",
            Below(1e-8),
            exact=True,
        ),
        Claim(
            "two-state-information",
            "In a stationary two-state chain the χ² information at lag d is λ^{2d}.",
            GRAPHS,
            "largest difference over random chains and lags 1 to 6",
            Below(1e-9),
            exact=True,
        ),
        Claim(
            "information-falls",
            "χ² information never increases with the lag.",
            f"{GRAPHS} (data processing)",
            "largest increase from one lag to the next, 100 random chains of 2 to 5 states",
            Below(1e-12),
            exact=True,
        ),
        Claim(
            "chow-liu",
            "Chow and Liu's tree of the χ² information of samples is the causal tree.",
            "Chow & Liu 1968",
            "share of edges recovered from 20 000 sequences of a fixed kernel, random trees",
            Equals(1.0, 0.0),
            exact=True,
        ),
        Claim(
            "row-entropy",
            "A Dirichlet row has expected entropy ψ(Sα + 1) − ψ(α + 1).",
            "closed form",
            "mean over sampled rows minus the closed form, S = 3, α = ½",
            Equals(0.0, 0.01),
        ),
        Claim(
            "visited-rows",
            "Rows that a chain visits have less entropy than rows drawn blindly.",
            "this laboratory",
            "entropy of the last token's row minus the closed form, S = 3, α = ½, length 64",
            Below(0.0),
        ),
    ],
)
def constructions(settings: Settings, lab: Lab) -> Outcome:
    """Each algorithm of the chapter as weights, compared with counting on random sequences, in float64.

    A tree's kernel (`causal-graph`), several parents (`parent-heads`), the induction head (`induction-head`), contexts
    of any order with one head per layer (`korder-three-layers`, `korder-two-layers`), and the pull-back that turns any
    attention-only transformer into a disentangled one (`disentangle`). Roots, and the last position as a key, match
    themselves unless the second layer is told not to; then the equality is exact. Beside them the closed forms that
    the chapter uses: χ² information of chains, Chow and Liu's tree, the entropy of random rows.

    **In the figure.** Left: largest error of each circuit over alphabets; rounding is at the bottom. Right: error of
    the three-layer circuit against κ · gap for orders 1 to 4, with the bound T e^{−κ·gap} (dotted): normalised contexts
    of order k differ by an angle that shrinks like B^{−k}, and κ must make up for it.
    """
    jobs = [CircuitJob(states, settings.orders, settings.examples) for states in settings.states]
    errors = lab.map(circuit_errors, jobs, label="circuits")
    sharpness = {order: _sharpness_errors(order) for order in settings.orders if order <= 4}
    worst = {name: max(error[name] for error in errors) for name in errors[0]}
    bounds = np.array([100 * math.exp(-exponent) for exponent in EXPONENTS])
    entropies = [_row_entropies(seed, settings.kernels) for seed in range(settings.seeds)]
    measurements: dict[str, Any] = {
        "causal-graph": worst["tree"],
        "several-parents": worst["parents"],
        "induction-head": worst["induction"],
        "three-layers": worst["three"],
        "two-layers": worst["two"],
        "sharpness": max(float((values / bounds)[bounds > 1e-6].max()) for values in sharpness.values()),
        "disentangled": _pull_back_gap(),
        "two-state-information": _two_state_gap(),
        "information-falls": _largest_increase(),
        "chow-liu": _recovered_edges(),
        "row-entropy": [blind for blind, _ in entropies],
        "visited-rows": [visited for _, visited in entropies],
    }
    return Outcome(measurements, {"circuits": circuits_figure(settings, errors, sharpness, bounds)})


def _sharpness_errors(order: int, length: int = 100) -> np.ndarray:
    tokens = InContextNgrams(3, 1, length, 1.0).sample(40, rng=rng(order, "sharpness")).inputs
    counts = CountingEstimator.of_order(3, order).last_counts(tokens)
    errors = []
    for exponent in EXPONENTS:
        model = korder_three_layers(3, order, length, sharpness=exponent / context_gap(order, 3.0))
        errors.append(_gap(model(with_start_token(tokens, 3))[:, -1].softmax(-1), counts))
    return np.array(errors)


def _pull_back_gap() -> float:
    shapes: tuple[dict[str, Any], ...] = (
        {"layers": 1, "heads": 2},
        {"layers": 2, "heads": (3, 1), "head_width": 4},
        {"layers": 3, "heads": 1},
    )
    worst = 0.0
    tokens = torch.randint(0, 4, (40, 8), generator=rng(0, "pull back"))
    for number, shape in enumerate(shapes):
        with seeded(number):
            model = Transformer(vocab=4, length=8, width=6, mlp="none", norm="none", init_std=0.6, **shape).double()
        worst = max(worst, float((model(tokens) - disentangle(model)(tokens)).detach().abs().max()))
    return worst


def _two_state_gap() -> float:
    p, q = torch.rand(2, 50, generator=rng(0, "binary"), dtype=torch.float64)
    kernels = torch.stack([torch.stack([1 - p, p], -1), torch.stack([q, 1 - q], -1)], -2)
    gaps = [(chain_chi_square(kernels, lag) - (1 - p - q) ** (2 * lag)).abs().max() for lag in range(1, 7)]
    return float(max(gaps))


def _largest_increase() -> float:
    increases = []
    for states in (2, 3, 4, 5):
        kernels = dirichlet_rows((25, states, states), 0.5, rng=rng(states, "chains"))
        table = torch.stack([chain_chi_square(kernels, lag) for lag in range(1, 7)])
        increases.append(float(table.diff(dim=0).max()))
    return max(increases)


def _recovered_edges() -> float:
    """Undirected edges: the tree has no arrow of time."""
    found, true = 0, 0
    for seed in range(4):
        parents = [max(parent, 0) if place else -1 for place, parent in enumerate(random_parents(10, seed))]
        kernel = MarkovChain.random(3, 1, seed=seed, concentration=0.5).table
        tokens = _walk_tree(kernel, parents, 20_000, rng(seed, "chow liu"))
        tree = chow_liu(position_information(tokens, 3, "chi-square"))
        edges = {frozenset(edge) for edge in enumerate(tree) if edge[1] >= 0}
        truth = {frozenset(edge) for edge in enumerate(parents) if edge[1] >= 0}
        found, true = found + len(edges & truth), true + len(truth)
    return found / true


def _walk_tree(kernel: torch.Tensor, parents: list[int], examples: int, draw: torch.Generator) -> torch.Tensor:
    tokens = torch.zeros(examples, len(parents), dtype=torch.int64)
    tokens[:, 0] = torch.randint(0, kernel.shape[-1], (examples,), generator=draw)
    for place, parent in enumerate(parents):
        if parent >= 0:
            tokens[:, place] = torch.multinomial(kernel[tokens[:, parent]], 1, generator=draw).squeeze(-1)
    return tokens


def _row_entropies(seed: int, rows: int) -> tuple[float, float]:
    """Mean entropy of blindly drawn rows, and of the row of the last token, each minus the closed form."""
    world = InContextMarkov(3, 1, 64, concentration=0.5)
    blind = dirichlet_rows((rows, 3), 0.5, rng=rng(seed, "rows"))
    batch = world.sample(rows // 10, rng=rng(seed, "visited"))
    visited = world.next_laws(batch)[:, -1]
    expected = world.expected_row_entropy()
    blind_mean, visited_mean = (float(torch.special.entr(part).sum(-1).mean()) for part in (blind, visited))
    return blind_mean - expected, visited_mean - expected


def circuits_figure(
    settings: Settings, errors: list[dict[str, float]], sharpness: dict[int, np.ndarray], bounds: np.ndarray
) -> Figure:
    """Errors by circuit and alphabet, and the error of the three-layer circuit by sharpness."""
    names = {"tree": "tree", "parents": "several parents", "induction": "induction head", "three": "order k, 3 layers",
             "two": "order k, 2 layers"}  # fmt: skip
    figure, axes = figures.new(2, width=4.9, height=3.4, title="Circuits equal counting; sharper attention errs less")
    with figures.style():
        for states, error in zip(settings.states, errors):
            shown = [max(error[name], 1e-17) for name in names]
            axes[0].plot(shown, range(len(names)), "o", markersize=5, label=f"{states} states")
        axes[0].set_yticks(range(len(names)), list(names.values()))
        axes[0].axvline(1e-6, color="#555555", linestyle=":", linewidth=1)
        axes[0].set(xscale="log", xlabel="largest error", title="orders 1 to 5", xlim=(1e-17, 1e-5))
        axes[0].legend(fontsize=8)
        for order, values in sharpness.items():
            axes[1].semilogy(EXPONENTS, np.maximum(values, 1e-17), "o-", markersize=4, label=f"order {order}")
        axes[1].semilogy(EXPONENTS, bounds, linestyle=":", color="#555555", label="T exp(−κ · gap)")
        axes[1].set(xlabel="κ · gap", ylabel="largest error", title="three layers, 3 states, T = 100")
        axes[1].legend(fontsize=8)
    return figure
