"""Circuits and closed forms: exact on small cases, and an error is seen as one."""

from __future__ import annotations

import pytest
import torch

from sandlab.lenses.markov import exactness


@pytest.mark.parametrize("states", [2, 4])
def test_every_circuit_equals_its_counts(states: int) -> None:
    assert exactness.tree_circuit_error(states, 10, seed=0) < 1e-9
    assert exactness.parents_circuit_error(states, 2, 10) < 1e-6
    assert exactness.induction_circuit_error(states, 10) < 1e-6
    assert exactness.korder_circuit_error(states, 2, layers=3) < 1e-6
    assert exactness.korder_circuit_error(states, 2, layers=2) < 1e-6


def test_the_error_is_the_largest_difference_where_anything_was_counted() -> None:
    counts = torch.tensor([[3.0, 1.0], [0.0, 0.0]], dtype=torch.float64)
    probs = torch.tensor([[0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    assert exactness.distance_from_counts(probs, counts) == pytest.approx(0.25)


def test_blunt_attention_errs_more_than_sharp_attention() -> None:
    assert exactness.sharpness_error(2, 2.0) > 10 * exactness.sharpness_error(2, 12.0)


def test_closed_forms() -> None:
    assert max(exactness.pull_back_error(layers) for layers in (1, 2, 3)) < 1e-8
    assert exactness.two_state_error(3) < 1e-9
    assert exactness.information_increase(3) < 1e-12
    assert exactness.recovered_edges(0) == 1.0
    assert exactness.recovered_edges(0, examples=20) < 1.0, "a few samples do not show the tree"
    blind, visited = exactness.row_entropy_errors(20_000, seed=0)
    assert abs(blind) < 0.01 and visited < 0
