"""Constructions on causal graphs equal the counts along the graph."""

from __future__ import annotations

import math

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.circuits.markov.causal_graphs import causal_graph_estimator, parent_heads_estimator
from sandlab.worlds.markov.causal_graphs import (
    InContextDag,
    InContextTree,
    chain_parents,
    lag_parents,
    pair_parents,
    random_parents,
    skip_parents,
)


def counted(counts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    total = counts.sum(-1)
    return total > 0, counts / total.clamp(min=1).unsqueeze(-1)


@pytest.mark.parametrize("states", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(6))
def test_tree_construction_equals_the_counts_along_the_edges(states, seed):
    parents = (chain_parents(24), pair_parents(24), *(random_parents(24, s) for s in range(4)))[seed]
    world = InContextTree(states, parents, concentration=1.0)
    tokens = world.sample(60, rng=rng(seed)).inputs
    matched, probs = counted(world.edge_counts(tokens))
    found = causal_graph_estimator(states, parents)(tokens)[:, -1].exp().detach()
    assert matched.any()
    assert float((found - probs)[matched].abs().max()) < 1e-12


def test_roots_that_are_not_silenced_count_as_matches():
    world = InContextTree(3, pair_parents(15), concentration=1.0)
    tokens = world.sample(200, rng=rng(0)).inputs
    matched, probs = counted(world.edge_counts(tokens))
    found = causal_graph_estimator(3, world.parents, silence_roots=False)(tokens)[:, -1].exp().detach()
    assert float((found - probs)[matched].abs().max()) > 0.3
    # What it does compute: every root, and the last position, is its own parent.
    roots = [(i, i) for i, parent in enumerate(world.parents) if parent < 0]
    _, with_roots = counted(world.edge_counts(tokens, world.edges + roots))
    assert float((found - with_roots).abs().max()) < 1e-12


@pytest.mark.parametrize("temperature", [10.0, 15.0, 20.0])
def test_error_falls_with_the_temperature_within_the_bound_of_two_softmaxes(temperature):
    """Each layer's softmax leaves at most T e^{−β} outside of its goal, and the scores of layer 2 carry a factor β."""
    bound = temperature * 24 * math.exp(-temperature)
    tree = InContextTree(3, random_parents(24, 2), concentration=1.0)
    tokens = tree.sample(60, rng=rng(0)).inputs
    matched, probs = counted(tree.edge_counts(tokens))
    found = causal_graph_estimator(3, tree.parents, temperature=temperature)(tokens)[:, -1].exp().detach()
    assert 0 < float((found - probs)[matched].abs().max()) < bound


@pytest.mark.parametrize(
    "parents",
    [
        skip_parents(20),
        lag_parents(20, (1,)),
        lag_parents(20, (1, 2)),
        lag_parents(20, (1, 3)),
        lag_parents(30, (1, 2, 3)),
        lag_parents(40, (1, 2, 3, 4)),
        lag_parents(60, (1, 2, 3, 4, 5)),
    ],
    ids=lambda parents: str(parents[-1]),
)
@pytest.mark.parametrize("states", [2, 3, 4, 5])
def test_one_head_per_parent_equals_the_counts_of_all_children_but_the_last(parents, states):
    world = InContextDag(states, parents, concentration=1.0)
    tokens = world.sample(200, rng=rng(1)).inputs
    last = world.length - 1
    children = [child for child in world.children if child != last]
    match = world.configurations(tokens, children) == world.configurations(tokens, [world.length])
    counts = (torch.nn.functional.one_hot(tokens[:, children], states) * match.unsqueeze(-1)).sum(1).double()
    matched, probs = counted(counts)
    found = parent_heads_estimator(states, parents)(tokens)[:, -1].exp().detach()
    assert matched.any()
    assert float((found - probs)[matched].abs().max()) < 1e-12


@pytest.mark.parametrize(
    "make",
    [
        lambda: causal_graph_estimator(3, (-1, 1)),
        lambda: causal_graph_estimator(3, (-1,)),
        lambda: parent_heads_estimator(3, ((), (0,), (0, 1))),
        lambda: parent_heads_estimator(3, ((), (0,), ())),
        lambda: causal_graph_estimator(3, (-1, 0, 1), temperature=-1.0),
    ],
)
def test_impossible_graphs_are_refused(make):
    with pytest.raises(BadInput):
        make()
