"""How exact the circuits and closed forms of the Markov chapter are: largest errors on random sequences and chains."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from sandlab.circuits.markov.causal_graphs import causal_graph_estimator, parent_heads_estimator
from sandlab.circuits.markov.induction import induction_head
from sandlab.circuits.markov.korder import context_gap, korder_three_layers, korder_two_layers, with_start_token
from sandlab.circuits.markov.pull_back import disentangle
from sandlab.lenses.markov.dependence import chain_chi_square
from sandlab.models.base import seeded
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.worlds.markov._walk import dirichlet_rows, walk_graph
from sandlab.worlds.markov.causal_graphs import InContextDag, InContextTree, lag_parents, random_parents
from sandlab.worlds.markov.chain import InContextMarkov, MarkovChain
from sandlab.worlds.markov.structure import chow_liu, position_information
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams

__all__ = [
    "distance_from_counts",
    "induction_circuit_error",
    "information_increase",
    "korder_circuit_error",
    "parents_circuit_error",
    "pull_back_error",
    "recovered_edges",
    "row_entropy_errors",
    "sharpness_error",
    "tree_circuit_error",
    "two_state_error",
]


def distance_from_counts(probs: Float[Tensor, "*lead states"], counts: Float[Tensor, "*lead states"]) -> float:
    """Largest difference between predicted probabilities and normalised counts, where anything was counted."""
    total = counts.sum(-1, keepdim=True)
    distance = (probs.detach() - counts / total.clamp(min=1)).abs().amax(-1)
    return float(distance[total.squeeze(-1) > 0].max())


def tree_circuit_error(states: int, examples: int, seed: int) -> float:
    """The circuit `causal-graph-estimator` on a random tree of 24 positions, against the counts along its edges."""
    tree = InContextTree(states, random_parents(24, seed), concentration=1.0)
    tokens = tree.sample(examples, rng=rng(seed, "tree")).inputs
    return distance_from_counts(
        causal_graph_estimator(states, tree.parents)(tokens)[:, -1].exp(), tree.edge_counts(tokens)
    )


def parents_circuit_error(states: int, order: int, examples: int) -> float:
    """The circuit `parent-heads-estimator` on chains of some order, against the counts of equal configurations.

    All children count but the last one, whose history is replaced by the query.
    """
    length = 20 + 8 * order
    graph = InContextDag(states, lag_parents(length, tuple(range(1, order + 1))), concentration=0.1)
    tokens = graph.sample(examples, rng=rng(order, "parents")).inputs
    children = graph.children[:-1]
    match = graph.configurations(tokens, children) == graph.configurations(tokens, [length])
    counts = (one_hot(tokens[:, children], states) * match.unsqueeze(-1)).sum(1).double()
    return distance_from_counts(parent_heads_estimator(states, graph.parents)(tokens)[:, -1].exp(), counts)


def induction_circuit_error(states: int, examples: int) -> float:
    """The circuit `induction-head` on 64 uniform tokens, against the clamped order-1 estimator."""
    tokens = torch.randint(0, states, (examples, 64), generator=rng(states, "induction"))
    counts = CountingEstimator(states, (1,), boundary="clamped").counts(tokens)
    return distance_from_counts(induction_head(states, 64)(tokens).softmax(-1), counts)


def korder_circuit_error(states: int, order: int, layers: int) -> float:
    """The circuits `korder-three-layers` and `korder-two-layers`, against the strict estimator, length 120."""
    circuit = {2: korder_two_layers, 3: korder_three_layers}[layers](states, order, 120)
    tokens = InContextNgrams(states, 1, 120, 1.0).sample(12, rng=rng(order, "korder")).inputs
    probs = circuit(with_start_token(tokens, states))[:, 1:].softmax(-1)
    return distance_from_counts(probs, CountingEstimator.of_order(states, order).counts(tokens))


def sharpness_error(order: int, exponent: float) -> float:
    """Error of `korder-three-layers` when κ · gap is `exponent`, 3 states and length 100, last position."""
    tokens = InContextNgrams(3, 1, 100, 1.0).sample(40, rng=rng(order, "sharpness")).inputs
    model = korder_three_layers(3, order, 100, sharpness=exponent / context_gap(order, 3.0))
    probs = model(with_start_token(tokens, 3))[:, -1].softmax(-1)
    return distance_from_counts(probs, CountingEstimator.of_order(3, order).last_counts(tokens))


def pull_back_error(layers: int) -> float:
    """Largest difference of logits between a random attention-only transformer and its disentangled equal."""
    heads, head_width = {1: ((2,), None), 2: ((3, 1), 4), 3: ((1, 1, 1), None)}[layers]
    with seeded(layers - 1):
        model = Transformer(
            vocab=4, length=8, width=6, layers=layers, heads=heads, head_width=head_width, mlp="none", norm="none",
            init_std=0.6,
        ).double()  # fmt: skip
    tokens = torch.randint(0, 4, (40, 8), generator=rng(0, "pull back"))
    return float((model(tokens) - disentangle(model)(tokens)).detach().abs().max())


def two_state_error(lag: int) -> float:
    """Largest distance of the χ² information of random two-state chains from λ^{2·lag}."""
    p, q = torch.rand(2, 50, generator=rng(0, "binary"), dtype=torch.float64)
    kernels = torch.stack([torch.stack([1 - p, p], -1), torch.stack([q, 1 - q], -1)], -2)
    return float((chain_chi_square(kernels, lag) - (1 - p - q) ** (2 * lag)).abs().max())


def information_increase(states: int) -> float:
    """Largest increase of the χ² information from one lag to the next, over random chains."""
    kernels = dirichlet_rows((25, states, states), 0.5, rng=rng(states, "chains"))
    return float(torch.stack([chain_chi_square(kernels, lag) for lag in range(1, 7)]).diff(dim=0).max())


def recovered_edges(seed: int, examples: int = 20_000) -> float:
    """Share of the edges of a random tree, whatever their direction, that Chow and Liu's tree of samples has."""
    parents = [max(parent, 0) if child else -1 for child, parent in enumerate(random_parents(10, seed))]
    kernel, draws = MarkovChain.random(3, 1, seed=seed, concentration=0.5).table, rng(seed, "chow liu")
    tokens = torch.zeros(examples, len(parents), dtype=torch.int64)
    tokens[:, 0] = torch.randint(0, 3, (examples,), generator=draws)
    plan = [(child, (parent,)) for child, parent in enumerate(parents) if parent >= 0]
    tokens = walk_graph(kernel.unsqueeze(0), tokens, plan, rng=draws)
    tree = chow_liu(position_information(tokens, 3, "chi-square"))
    found, true = ({frozenset(edge) for edge in enumerate(each) if edge[1] >= 0} for each in (tree, parents))
    return len(found & true) / len(true)


def row_entropy_errors(rows: int, seed: int) -> tuple[float, float]:
    """Mean entropy of Dirichlet(½) rows drawn blindly, and of those of last tokens, each minus the closed form."""
    world = InContextMarkov(3, 1, 64, concentration=0.5)
    blind = dirichlet_rows((rows, 3), 0.5, rng=rng(seed, "rows"))
    visited = world.next_probs(world.sample(rows // 10, rng=rng(seed, "visited")))[:, -1]
    first, second = (float(torch.special.entr(part).sum(-1).mean()) for part in (blind, visited))
    return first - world.expected_row_entropy(), second - world.expected_row_entropy()
