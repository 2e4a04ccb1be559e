"""The constructions of the chapter, each against its world's truth."""

from __future__ import annotations

import itertools
import math

import networkx
import pytest
import torch

from sandlab import rng
from sandlab.circuits.reasoning.connectivity import repeated_squaring, squaring_inputs
from sandlab.circuits.reasoning.gate_by_gate import gate_by_gate
from sandlab.circuits.reasoning.ideal import ideal_features, ideal_lego_transformer
from sandlab.lenses.token_accuracy import accuracy_on
from sandlab.models.hooks import record
from sandlab.worlds.reasoning.actions import named_action
from sandlab.worlds.reasoning.boolean_circuits import CircuitEvaluation
from sandlab.worlds.reasoning.clauses import SLOTS
from sandlab.worlds.reasoning.graphs import GraphConnectivity
from sandlab.worlds.reasoning.lego import Lego


@pytest.mark.parametrize("name", ["C3", "C6", "S3", "S4", "S3 regular"])
def test_ideal_features_are_b_on_the_right_pair_and_cancel_where_one_part_is_shared(name):
    action, clip = named_action(name), 7.0
    pairs = ideal_features(action, clip).pairs()
    for j, y, g, other in itertools.product(
        *map(range, (action.values, action.values, action.elements, action.values))
    ):
        shared = int(action.array[g, y] == j) + int(other == y)
        assert float(pairs[j, y, g, other]) == pytest.approx((0.0 if shared == 1 else clip) * (1 if shared else -1))


def test_ideal_features_have_the_worked_values():
    cyclic = ideal_features("C3", 1.0)
    assert cyclic.actions[0, 1].tolist() == [-1, -1, 1] and cyclic.values[0, 1].tolist() == [-1, 1, -1]
    natural = ideal_features("S3", 9.0)
    assert sorted(set(natural.actions.flatten().round(decimals=9).tolist())) == pytest.approx([-8, 10])


@pytest.mark.parametrize("name", ["C3", "S3", "C4"])
def test_the_ideal_network_answers_all_five_slots_of_short_chains(name):
    world = Lego(name, variables=9, length=8, predict_blanks=True)
    model = ideal_lego_transformer(world, 4.0)
    assert accuracy_on(model, world.sample(60, rng=rng(0))) == 1.0


def test_attention_of_the_ideal_network_follows_the_dilution_law():
    world, first, second = Lego("C3", variables=12, length=7, predict_blanks=True), 1.3, 0.4
    model, batch = (
        ideal_lego_transformer(world, first, second),
        Lego("C3", variables=12, length=7).sample(5, rng=rng(1)),
    )
    with record(model, "pattern") as cache:
        model(batch.inputs)
    for step in range(7):
        row = cache["pattern"][0, 7 + step]
        total = math.exp(first) + math.exp(second) + 7 + (step + 1) - 2
        assert float(row[step]) == pytest.approx(math.exp(first) / total, abs=1e-12)
        assert float(row[7 + step]) == pytest.approx(math.exp(second) / total, abs=1e-12)


@pytest.mark.parametrize("chained", [True, False])
def test_every_gate_of_every_circuit_is_evaluated_in_one_step(chained):
    world = CircuitEvaluation(inputs=3, gates=10, chained=chained)
    assert accuracy_on(gate_by_gate(world), world.sample(500, rng=rng(2))) == 1.0


@pytest.mark.parametrize("vertices", [4, 8, 12, 32])
def test_repeated_squaring_decides_connectivity(vertices):
    world = GraphConnectivity(vertices=vertices)
    batch = world.sample(100, rng=rng(3))
    ends = batch.inputs.view(100, -1, SLOTS)[:, : world.edges][..., [0, 2]]
    model = repeated_squaring(vertices, world.edges)
    found = model(squaring_inputs(ends, batch.truth["walk"][:, 0], batch.truth["target"], vertices))[:, -1].argmax(-1)
    assert torch.equal(found.bool(), batch.truth["linked"])


def test_k_squarings_find_exactly_the_pairs_at_distance_two_to_the_k():
    graph = networkx.gnm_random_graph(9, 11, seed=4)
    ends = torch.tensor(list(graph.edges)).expand(81, -1, -1)
    pairs = torch.cartesian_prod(torch.arange(9), torch.arange(9))
    distance = dict(networkx.all_pairs_shortest_path_length(graph))
    for rounds in range(4):
        model = repeated_squaring(9, 11, rounds)
        found = model(squaring_inputs(ends, pairs[:, 0], pairs[:, 1], 9))[:, -1].argmax(-1)
        truth = [distance[s].get(t, 99) <= 2**rounds for s, t in pairs.tolist()]
        assert found.bool().tolist() == truth
