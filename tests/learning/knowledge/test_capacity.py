"""Capacity by bisection."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.errors import BadInput
from sandlab.learning.knowledge.capacity import (
    MemoryTraining,
    _draw,
    _loss_gradient,
    bisect_sizes,
    memory_accuracies,
    memory_capacity,
)


@pytest.mark.parametrize("tries", [1, 3, 7])
@pytest.mark.parametrize("limits", [[1, 7, 100], [37, 37, 2], [99, 64, 63]])
def test_bisection_finds_every_members_limit(limits: list[int], tries: int) -> None:
    def trial(sizes):
        return [size <= limits[place // tries] for place, size in enumerate(sizes)]

    assert bisect_sizes(trial, 1, 100, 3, resolution=0.0, tries=tries) == limits


@pytest.mark.parametrize("resolution", [0.0, 0.03, 0.3])
def test_several_tries_at_once_find_what_single_ones_find(resolution: float) -> None:
    """Also where a small size fails by chance and a larger one passes."""
    passes = np.random.default_rng(0).random((40, 301)) > np.linspace(0, 1, 301)

    def search(tries: int) -> list[int]:
        def trial(sizes):
            assert all(2 <= size <= 300 for size in sizes)
            return [passes[place // tries, size] for place, size in enumerate(sizes)]

        return bisect_sizes(trial, 2, 300, 40, resolution=resolution, tries=tries)

    assert len(set(search(1))) > 10 and search(1) == search(3) == search(7)


def test_tries_are_whole_steps_of_bisection() -> None:
    with pytest.raises(BadInput, match="tries must be 1, 3, 7"):
        bisect_sizes(lambda sizes: [True] * len(sizes), 2, 50, 1, tries=2)


def test_the_gradient_is_that_of_the_cross_entropy() -> None:
    outputs, answers = torch.randn(2, 5, 4, dtype=torch.float64), torch.randn(2, 5, 4, dtype=torch.float64)
    outputs.requires_grad_()
    unused = torch.zeros(2, 1, 5, dtype=torch.float64)
    unused[1, 0, 3:] = -torch.inf  # the second member has three items
    own = -(outputs @ answers.mT + unused).log_softmax(-1).diagonal(dim1=-2, dim2=-1)
    (expected,) = torch.autograd.grad(own[0].sum() + own[1, :3].sum(), outputs)
    found = _loss_gradient(outputs.detach(), answers, unused)
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
    torch.testing.assert_close(memory_accuracies(training, [30], [0]), right[None])


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
