"""Capacity by bisection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from sandlab.learning.knowledge import capacity
from sandlab.learning.knowledge.capacity import (
    MemoryTraining,
    _best_accuracies,
    _draw,
    _loss_gradient,
    bisect_sizes,
    memory_accuracies,
    memory_capacity,
)


@pytest.mark.parametrize("start", [None, 1, 8, 60, 100, 500])
@pytest.mark.parametrize("limits", [[1, 7, 100], [37, 37, 2], [99, 64, 63]])
def test_bisection_finds_every_members_limit(limits: list[int], start: int | None) -> None:
    def trial(sizes):
        assert all(1 <= size <= 100 for size in sizes)
        return [size <= limit for size, limit in zip(sizes, limits)]

    assert bisect_sizes(trial, 1, 100, 3, resolution=0.0, start=start) == limits


@pytest.mark.parametrize("start", [4700, 5800, 7000])
def test_from_a_start_below_the_limit_a_single_size_fails(start: int) -> None:
    asked: list[int] = []

    def trial(sizes):
        asked.extend(sizes)
        return [size <= 5800 for size in sizes]

    assert 5800 / 1.03 <= bisect_sizes(trial, 2, 17000, 1, start=start)[0] <= 5800
    failures = [size for size in asked if size > 5800]
    assert len(asked) < 10 and (len(failures) == 1 if start <= 5800 else max(asked) == start)


def test_the_gradient_is_that_of_the_cross_entropy() -> None:
    outputs, answers = torch.randn(2, 5, 4, dtype=torch.float64), torch.randn(2, 5, 4, dtype=torch.float64)
    outputs.requires_grad_()
    unused = torch.zeros(2, 1, 5, dtype=torch.float64)
    unused[1, 0, 3:] = -torch.inf  # the second member has three items
    own = -(outputs @ answers.mT + unused).log_softmax(-1).diagonal(dim1=-2, dim2=-1)
    (expected,) = torch.autograd.grad(own[0].sum() + own[1, :3].sum(), outputs)
    found = _loss_gradient(outputs.detach(), answers, unused, torch.float64)
    torch.testing.assert_close(found[0], expected[0])
    torch.testing.assert_close(found[1, :3], expected[1, :3])


def test_training_follows_adam_with_a_cosine_schedule() -> None:
    training = MemoryTraining(6, iterations=40, lr=0.05)
    keys, answers, (weight,) = _draw(training, [30], [0], "cpu")
    optimizer = torch.optim.Adam([weight], lr=training.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, training.iterations)
    for _ in range(training.iterations):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy((keys @ weight.mT @ answers.mT)[0], torch.arange(30)).backward()
        optimizer.step()
        schedule.step()
    right = ((keys @ weight.mT @ answers.mT)[0].argmax(-1) == torch.arange(30)).float().mean()
    assert 0.1 < float(right) < 1  # somewhere on its way
    torch.testing.assert_close(_best_accuracies(replace(training, level=1.0), [30], [0], "cpu"), right[None])


def test_the_best_on_the_way_counts_and_ends_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    updates = []
    monkeypatch.setattr(capacity, "_loss_gradient", lambda *given: updates.append(1) or _loss_gradient(*given))
    assert memory_accuracies(MemoryTraining(8, iterations=1000, lr=0.05), [5], [0]).item() == 1.0
    assert len(updates) % capacity.LOOK == 0 and len(updates) < 500


def test_products_in_bfloat16_hold_as_much() -> None:
    exact, short = (
        memory_capacity(MemoryTraining(16, iterations=500, lr=0.1, precision=precision), range(3))
        for precision in ("float32", "bfloat16")
    )
    assert np.mean(short) == pytest.approx(np.mean(exact), rel=0.05)


def test_blocks_of_items_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    training = MemoryTraining(6, iterations=80, lr=0.05)
    whole = memory_accuracies(training, [40], [0])
    monkeypatch.setattr(capacity, "BLOCK", 7)
    torch.testing.assert_close(memory_accuracies(training, [40], [0]), whole)


def test_a_member_that_fails_at_once_is_told() -> None:
    assert bisect_sizes(lambda sizes: [False] * len(sizes), 3, 50, 2) == [2, 2]


def test_a_few_items_are_held_and_too_many_are_not() -> None:
    few, many = memory_accuracies(MemoryTraining(8, iterations=300, lr=0.05), [10, 600], [0, 1]).tolist()
    assert few == 1.0 and many < 0.6


def test_members_do_not_disturb_each_other() -> None:
    training = MemoryTraining(6, iterations=20)
    together = _best_accuracies(training, [12, 40], [0, 1], "cpu")
    alone = torch.cat([memory_accuracies(training, [12], [0]), memory_accuracies(training, [40], [1])])
    assert torch.equal(together, alone)


def test_capacity_grows_with_the_width() -> None:
    small, large = (memory_capacity(MemoryTraining(d, iterations=150, lr=0.05), [0])[0] for d in (4, 8))
    assert 4 <= small < large <= 256
