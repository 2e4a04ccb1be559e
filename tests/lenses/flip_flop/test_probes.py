"""Probes of flip-flop experiments agree with direct measurements."""

from __future__ import annotations

import torch

import sandlab as sl
from sandlab.learning.experiment import Snapshot
from sandlab.lenses.flip_flop.probes import ReadErrors, distance_edges, excess_loss, read_sets
from sandlab.lenses.flip_flop.tail_errors import tail_error
from sandlab.worlds.flip_flop.language import FlipFlop

WORLD = FlipFlop.ignoring(0.8, length=16, mode="generative")


class Knows(torch.nn.Module):
    """The true distribution of the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        batch = sl.worlds.Batch(inputs, inputs, inputs >= 0)
        return WORLD.oracle(batch).clamp(min=-1e9) * self.scale


def snapshot(factory: object, seeds: int) -> Snapshot:
    population = sl.learning.Population(factory, seeds=range(seeds), strategy="sequential")
    return Snapshot(population, WORLD, WORLD.sample(8, rng=sl.rng(0)))


def small(seed: int) -> torch.nn.Module:
    return sl.models.Transformer(vocab=5, length=15, layers=1, width=8)


def test_the_true_distribution_has_no_excess_loss() -> None:
    assert abs(float(excess_loss(snapshot(lambda seed: Knows(), 1))["excess"][0])) < 1e-6
    assert float(excess_loss(snapshot(small, 2))["excess"].min()) > 0.1


def test_read_errors_are_those_of_each_member_on_each_set() -> None:
    now = snapshot(small, 2)
    found = ReadErrors(WORLD, reads=300)(now)
    for name, world in read_sets(WORLD).items():
        assert world.mode == "clean" and world.length == 16
        expected = [
            tail_error(member, world, targets=300, rng=now.rng(11, name), chunk=256).rate
            for member in now.model.members()
        ]
        assert found[name].tolist() == expected
    bits = ReadErrors(WORLD, reads=300, bits=True)(now)
    assert all((bits[f"{name} bits"] <= found[name]).all() for name in found)


def test_distances_are_binned_in_powers_of_two_up_to_half_the_length() -> None:
    assert distance_edges(64).tolist() == [0, 1, 2, 4, 8, 16, 32]
    assert distance_edges(24).tolist() == [0, 1, 2, 4, 8]
