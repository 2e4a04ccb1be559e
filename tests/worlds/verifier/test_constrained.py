"""Constrained tasks against enumeration of every string."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.worlds.verifier.constrained import AllZeros, BitTask, HiddenParity, SomeZero
from sandlab.worlds.verifier.knapsack import (
    Knapsack,
    knapsack_density,
    knapsack_table,
    solve_knapsack,
    solve_superincreasing,
)

TASKS = [
    AllZeros(length=6),
    SomeZero(length=6),
    HiddenParity(length=6, secret=11),
    HiddenParity(length=6, secret=19, support_aware=True),
    Knapsack(weights=(3, 5, 8, 2, 7, 4), capacity=14),
]


def in_target_set(task: BitTask, string: tuple[int, ...]) -> bool:
    if isinstance(task, AllZeros):
        return sum(string) == 0
    if isinstance(task, SomeZero):
        return 0 in string
    if isinstance(task, Knapsack):
        return sum(bit * weight for bit, weight in zip(string, task.weights)) == task.capacity
    assert isinstance(task, HiddenParity)
    even = sum(string) % 2 == 0
    return even and (not task.support_aware or list(string) == task.answer.tolist())


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_prefixes_are_completable_exactly_when_some_string_of_the_target_set_continues_them(task: BitTask) -> None:
    strings = [string for string in itertools.product((0, 1), repeat=task.length) if in_target_set(task, string)]
    for length in range(task.length + 1):
        prefixes = list(itertools.product((0, 1), repeat=length))
        rows = torch.tensor(prefixes, dtype=torch.long).reshape(len(prefixes), length)
        padded = torch.cat([rows, torch.ones(len(rows), task.length - length, dtype=torch.long)], 1)
        lengths = torch.full((len(rows),), length)
        starts = {string[:length] for string in strings}
        assert task.completable(padded, lengths).tolist() == [prefix in starts for prefix in prefixes]
        assert task.contains(padded, lengths).tolist() == [prefix in set(strings) for prefix in prefixes]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_samples_follow_the_oracle(task: BitTask) -> None:
    batch = task.sample(5_000, rng=sl.rng(0))
    probs = task.oracle(batch).exp()
    assert torch.allclose(probs.sum(-1), torch.ones(1, dtype=torch.float64))
    chosen = probs.gather(-1, batch.targets.unsqueeze(-1))
    assert float(chosen.min()) > 0
    free = probs[..., 1] == 0.5
    assert abs(float(batch.targets[free].double().mean()) - 0.5) < 0.01
    assert batch.truth["inside"].tolist() == [in_target_set(task, tuple(bits)) for bits in batch.targets.tolist()]


@pytest.mark.parametrize("length", [2, 5, 9])
def test_the_secret_and_its_parity_are_the_only_reachable_string_of_even_parity(length: int) -> None:
    for secret in (0, 2 ** (length - 1) - 1, 2 ** (length - 2)):
        task = HiddenParity(length=length, secret=secret)
        strings = task.strings()
        inputs = torch.cat([torch.full((len(strings), 1), 2), strings[:, :-1]], 1)
        batch = sl.worlds.Batch(inputs, strings, torch.ones_like(strings, dtype=torch.bool))
        probability = task.oracle(batch).gather(-1, strings.unsqueeze(-1)).sum((1, 2)).exp()
        reached = strings[(probability > 0) & task.accepts(strings)]
        assert reached.tolist() == [task.answer.tolist()]
        assert float(probability.sum()) == pytest.approx(1)


def brute(weights: Sequence[int], capacity: int) -> tuple[int, ...] | None:
    for bits in itertools.product((0, 1), repeat=len(weights)):
        if sum(bit * weight for bit, weight in zip(bits, weights)) == capacity:
            return bits
    return None


def test_the_table_solves_random_instances_as_brute_force_does() -> None:
    chance = np.random.default_rng(0)
    for _ in range(60):
        weights = chance.integers(1, 30, size=chance.integers(1, 9)).tolist()
        capacity = int(chance.integers(0, 60))
        solution = solve_knapsack(weights, capacity)
        assert (solution is None) == (brute(weights, capacity) is None)
        if solution is not None:
            assert sum(bit * weight for bit, weight in zip(solution, weights)) == capacity
        assert knapsack_table(weights, capacity).shape == (len(weights) + 1, capacity + 1)


def test_greedy_is_right_for_superincreasing_weights_and_can_miss_a_solution_otherwise() -> None:
    chance = np.random.default_rng(1)
    for _ in range(60):
        weights: list[int] = []
        for _ in range(int(chance.integers(2, 9))):
            weights.append(int(max(sum(weights), 1) + chance.integers(0, 4)))
        capacity = int(chance.integers(0, sum(weights) + 1))
        found = solve_superincreasing(weights, capacity)
        assert (found is None) == (brute(weights, capacity) is None)
    assert solve_superincreasing([3, 4, 5], 7) is None and brute([3, 4, 5], 7) is not None


def test_density() -> None:
    assert knapsack_density([1, 2, 4, 8]) == pytest.approx(4 / 3)
    with pytest.raises(sl.BadInput, match="not all 1"):
        knapsack_density([1, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AllZeros(length=0), "length must be a whole number of at least 1"),
        (lambda: HiddenParity(length=4, secret=8), "secret must be a number of 3 bits, got 8: below 8"),
        (lambda: Knapsack(weights=(3, 0)), "weights must be a whole number of at least 1, got 0"),
        (lambda: Knapsack(weights=()), "weights must be at least one number"),
    ],
)
def test_bad_parameters_are_refused(make: Callable[[], BitTask], message: str) -> None:
    with pytest.raises(sl.BadInput, match=message):
        make()
