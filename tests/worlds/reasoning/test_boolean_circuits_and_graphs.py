"""Circuits, connectivity and multi-hop questions against direct searches."""

from __future__ import annotations

import networkx
import pytest
import torch

from sandlab import BadInput, rng
from sandlab.worlds.reasoning.boolean_circuits import GATES, CircuitEvaluation
from sandlab.worlds.reasoning.clauses import SLOTS
from sandlab.worlds.reasoning.graphs import GraphConnectivity, MultiHopReasoning, reachable

WORLDS = [
    CircuitEvaluation(inputs=3, gates=6),
    CircuitEvaluation(inputs=3, gates=6, thought=False, chained=False),
    GraphConnectivity(vertices=8),
    GraphConnectivity(vertices=12, thought=True),
    MultiHopReasoning(),
    MultiHopReasoning(things=30, hops=4, distractors=3, thought=True),
]


@pytest.mark.parametrize("world", WORLDS, ids=repr)
def test_the_oracle_is_certain_and_right(world):
    batch = world.sample(200, rng=rng(0))
    assert world.optimal_loss(batch) == 0.0
    found = world.oracle(batch).argmax(-1)
    assert torch.equal(found[batch.mask], batch.targets[batch.mask])
    assert int(batch.inputs.max()) < world.vocab and world.render(batch.inputs[0])


def test_gate_values_are_those_of_a_direct_evaluation():
    world = CircuitEvaluation(inputs=3, gates=7)
    batch = world.sample(50, rng=rng(1))
    for clauses, values in zip(batch.inputs.view(50, -1, SLOTS)[:, :7].tolist(), batch.truth["values"].tolist()):
        for node, kind, first, second, _ in clauses:
            name = list(GATES)[kind - world.nodes]
            assert values[node] == GATES[name][2 * values[first] + values[second]]


def test_connectivity_agrees_with_networkx():
    world = GraphConnectivity(vertices=10)
    batch = world.sample(60, rng=rng(2))
    for clauses, linked in zip(batch.inputs.view(60, -1, SLOTS).tolist(), batch.truth["linked"].tolist()):
        graph = networkx.Graph([(u, v) for u, _, v, _, _ in clauses[: world.edges]])
        assert networkx.has_path(graph, clauses[-1][3], clauses[-1][1]) == linked


def test_repeated_squaring_is_the_transitive_closure():
    adjacency = torch.rand(20, 9, 9, generator=rng(3)) < 0.12
    for matrix, found in zip(adjacency, reachable(adjacency)):
        graph = networkx.from_numpy_array(matrix.numpy(), create_using=networkx.DiGraph)
        closure = networkx.to_numpy_array(networkx.transitive_closure(graph, reflexive=True)) > 0
        assert (found.numpy() == closure).all()


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(BadInput, match="even"):
        GraphConnectivity(vertices=7)
    with pytest.raises(BadInput, match="entities"):
        MultiHopReasoning(things=5)
