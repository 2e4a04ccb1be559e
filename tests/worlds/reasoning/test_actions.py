"""Group actions: the table, the fibres, and the numbers that the theory reads off them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sandlab import BadInput
from sandlab.worlds.reasoning.actions import (
    MATCHED_PAIRS,
    coset_action,
    cyclic_action,
    named_action,
    regular_action,
    symmetric_action,
    table_action,
)

ACTIONS = ["C2", "C6", "S3", "S4", "S3 regular", "S4 on 2-tuples"]


@pytest.mark.parametrize("name", ACTIONS)
def test_the_action_respects_composition_inverse_and_identity(name):
    action = named_action(name)
    for g, h in itertools.product(range(action.elements), repeat=2):
        assert (action.array[action.compose(g, h)] == action.array[g][action.array[h]]).all()
    for g in range(action.elements):
        assert (action.array[action.compose(g, action.inverse(g))] == np.arange(action.values)).all()


@pytest.mark.parametrize("name", ACTIONS)
def test_every_fibre_of_a_transitive_action_has_the_size_of_a_stabiliser(name):
    action = named_action(name)
    assert action.is_transitive
    for j, y in itertools.product(range(action.values), repeat=2):
        assert len(action.fiber(j, y)) == action.elements // action.values == len(action.stabiliser(y))


def test_simple_transitivity_is_a_property_of_the_action_not_of_the_group():
    assert named_action("S3 regular").is_simply_transitive and not named_action("S3").is_simply_transitive
    assert cyclic_action(6).is_simply_transitive and named_action("S3 on 2-tuples").is_simply_transitive
    assert not table_action([[0, 1, 2], [1, 0, 2]]).is_transitive


def test_distractor_rates_are_one_over_the_number_of_values_and_pairs_are_matched():
    for name in ACTIONS:
        action = named_action(name)
        agreeing = [(action.array[:, y][:, None] == action.array[:, y]).mean() for y in range(action.values)]
        assert action.distractor_rate == pytest.approx(np.mean(agreeing)) == pytest.approx(1 / action.values)
    for first, second in MATCHED_PAIRS[:2]:
        assert named_action(first).distractor_rate == pytest.approx(named_action(second).distractor_rate)


def test_imbalance_has_the_known_values():
    known = {"C6": 1.0, "S3": 5 / 4, "S4": 19 / 9, "S5": 97 / 28}
    for name, value in known.items():
        assert named_action(name).imbalance == pytest.approx(value)


def test_only_groups_without_a_simple_non_abelian_part_are_solvable():
    assert [named_action(name).is_solvable for name in ("C6", "S3", "S4", "S5")] == [True, True, True, False]


def test_cosets_interpolate_between_the_natural_and_the_regular_action():
    group = symmetric_action(4)
    sizes = [coset_action(group, [group.identity]).values, named_action("S4 on 2-tuples").values]
    assert sizes == [24, 12] and regular_action(group).values == 24
    assert coset_action(group, group.stabiliser(0)).values == 4
    assert math.prod(sizes) == 288


def test_tables_that_are_no_actions_are_refused():
    with pytest.raises(BadInput, match="one permutation"):
        table_action([[0, 0]])
    with pytest.raises(BadInput, match="not closed"):
        table_action([[0, 1, 2], [1, 2, 0]])
    with pytest.raises(BadInput, match="no action called"):
        named_action("X7")


def test_the_transition_graph_of_a_generator_of_a_cyclic_group_is_one_cycle():
    graph = cyclic_action(5).transition_graph([1])
    assert sorted(graph.edges()) == [(y, (y + 1) % 5) for y in range(5)]
