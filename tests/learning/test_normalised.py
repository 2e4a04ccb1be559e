"""Normalised descent of a population: the length and the direction of its step, and no step without a gradient."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.learning.optim import Normalised
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.worlds.base import Batch, World


def rows_of(*shapes: tuple[int, int], scale: float = 1.0) -> list[torch.Tensor]:
    return [scale * torch.randn(*shape, generator=sl.rng(sum(shape))) for shape in shapes]


def test_every_member_moves_all_its_weights_together_by_its_rate():
    rows, slopes = rows_of((3, 5), (3, 2)), rows_of((3, 4 + 1), (3, 2), scale=1e-20)
    before = torch.cat(rows, 1).clone()
    lr, decay = torch.tensor([0.25, 1.0, 0.0], dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    Normalised().step(rows, slopes, lr, decay, torch.ones(3))
    moved = torch.cat(rows, 1).double() - before.double()
    gradient = torch.cat(slopes, 1).double()
    expected = -lr[:, None] * gradient / gradient.norm(dim=1, keepdim=True)
    torch.testing.assert_close(moved, expected, rtol=1e-3, atol=1e-6)
    assert moved.norm(dim=1).tolist() == pytest.approx(lr.tolist(), rel=1e-4)


def test_a_zero_gradient_moves_nothing():
    row = torch.ones(2, 3)
    Normalised().step([row], [torch.zeros(2, 3)], torch.ones(2).double(), torch.zeros(2).double(), torch.ones(2))
    assert bool((row == 1).all())


class Fixed(World):
    """Always the same examples, so that a step can be computed again by hand."""

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        inputs = torch.linspace(-1, 1, 4 * n).reshape(n, 4)
        return Batch(inputs, torch.arange(n) % 2, torch.ones(n, dtype=torch.bool), {})


def test_training_takes_the_step_that_autograd_says():
    def build(seed: int) -> torch.nn.Module:
        with sl.models.seeded(seed):
            return torch.nn.Linear(4, 2)

    population = Population(build, seeds=[0, 1])
    train(
        population, Fixed(), steps=1, batch_size=6, rng=sl.rng(0), optimizer="normalised", lr=[0.1, 0.3], progress=False
    )
    batch = Fixed().sample(6, rng=sl.rng(0))
    for seed, rate in enumerate((0.1, 0.3)):
        model = build(seed)
        torch.nn.functional.cross_entropy(model(batch.inputs), batch.targets).backward()
        length = torch.cat([weight.grad.flatten() for weight in model.parameters()]).norm()
        for name, weight in model.named_parameters():
            expected = weight.detach() - rate * weight.grad / length
            torch.testing.assert_close(population.member(seed).state_dict()[name], expected, rtol=1e-5, atol=1e-6)
