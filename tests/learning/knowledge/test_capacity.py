"""Capacity by bisection."""

from __future__ import annotations

import pytest
import torch

from sandlab.learning.knowledge.capacity import MemoryTraining, bisect_sizes, memory_accuracies, memory_capacity


@pytest.mark.parametrize("limits", [[1, 7, 100], [37, 37, 2], [99, 64, 63]])
def test_bisection_finds_every_members_limit(limits: list[int]) -> None:
    def trial(sizes):
        return [size <= limit for size, limit in zip(sizes, limits)]

    assert bisect_sizes(trial, 1, 100, 3, resolution=0.0) == limits


def test_a_member_that_fails_at_once_is_told() -> None:
    assert bisect_sizes(lambda sizes: [False] * len(sizes), 3, 50, 2) == [2, 2]


def test_a_few_items_are_held_and_too_many_are_not() -> None:
    few, many = memory_accuracies(MemoryTraining(8, iterations=300, lr=0.05), [10, 600], [0, 1]).tolist()
    assert few == 1.0 and many < 0.6


def test_members_do_not_disturb_each_other() -> None:
    training = MemoryTraining(6, iterations=20)
    together = memory_accuracies(training, [12, 40], [0, 1])
    alone = torch.cat([memory_accuracies(training, [12], [0]), memory_accuracies(training, [40], [1])])
    assert torch.equal(together, alone)


def test_capacity_grows_with_the_width() -> None:
    small, large = (memory_capacity(MemoryTraining(d, iterations=150, lr=0.05), [0])[0] for d in (4, 8))
    assert 4 <= small < large <= 256
