"""Accuracies of models whose errors are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import sandlab as sl
from sandlab.lenses.automata.state_tracking import (
    correct_states,
    count_accuracy,
    majority_accuracy,
    minimal_depth,
    state_accuracy,
)
from sandlab.worlds.automata.catalogue import named_machine


class Truncated(nn.Module):
    """Parity by a table of counts below a bound; 0 for all others."""

    def __init__(self, bound):
        super().__init__()
        self.bound = bound

    def forward(self, words):
        count = words.cumsum(-1)
        return nn.functional.one_hot(torch.where(count < self.bound, count % 2, 0), 2).float()


def test_a_perfect_model_is_always_right():
    machine = named_machine("C2", length=20)
    scores = state_accuracy(Truncated(99), machine, examples=50, rng=sl.rng(0))
    assert scores["token"] == [1.0] and scores["sequence"] == [1.0]


def test_accuracy_by_count_is_that_of_the_truncated_table():
    machine = named_machine("C2", length=8)
    found = count_accuracy(Truncated(3), machine, (0, 2, 8), examples=64, rng=sl.rng(1))
    # With eight ones the count at position t is t: right for counts 1, 2 and for the even ones 4, 6, 8.
    assert found.tolist() == [[1.0, 1.0, 5 / 8]]


def test_token_accuracy_of_a_truncated_table_is_the_binomial_sum():
    from scipy.stats import binom

    machine = named_machine("C2", length=10).task(probs=(0.3, 0.7))
    exact = np.mean([sum(binom.pmf(m, t, 0.7) for m in range(t + 1) if m < 4 or m % 2 == 0) for t in range(1, 11)])
    found = state_accuracy(Truncated(4), machine, examples=20_000, rng=sl.rng(2))["token"][0]
    assert found == pytest.approx(exact, abs=0.005)


@pytest.mark.parametrize("scratchpad", [False, True])
def test_members_are_tested_on_the_same_words_as_single_models(scratchpad):
    machine = named_machine("Grid4", length=6, scratchpad=scratchpad)
    population = sl.learning.Population(
        lambda seed: sl.models.LSTM(vocab=machine.vocab, outputs=4, width=4), seeds=range(3)
    )
    together = correct_states(population, machine, examples=30, rng=sl.rng(3))
    assert together.shape == (3, 30, 6)
    for member in range(3):
        alone = correct_states(population.member(member), machine, examples=30, rng=sl.rng(3))
        assert torch.equal(together[member], alone[0])


def test_long_words_are_computed_in_parts(monkeypatch):
    machine = named_machine("C2", length=8)
    whole = correct_states(Truncated(3), machine, examples=20, rng=sl.rng(5))
    monkeypatch.setattr("sandlab.lenses.automata.state_tracking.AT_ONCE", 24)
    assert torch.equal(correct_states(Truncated(3), machine, examples=20, rng=sl.rng(5)), whole)


def test_the_most_frequent_label_of_a_counter_is_no():
    machine = named_machine("C4", length=30, label="zero")
    assert majority_accuracy(machine, rng=sl.rng(4)) == pytest.approx(0.75, abs=0.01)


def test_the_smallest_depth_is_the_first_that_reaches_the_level():
    assert minimal_depth({4: 1.0, 1: 0.5, 2: 0.991}) == 2
    assert minimal_depth({1: 0.5}) is None
