"""Small exponential families and the Ising model as worlds of masked tokens."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.worlds.parallel.families import DiscreteFamily, Ising


def test_ising_probabilities_are_those_of_the_formula() -> None:
    world = Ising(3, (0.1, -0.2, 0.3), (0.5, 0.0, -0.4))
    weights = []
    for x in itertools.product((-1, 1), repeat=3):
        energy = 0.1 * x[0] * x[1] - 0.2 * x[0] * x[2] + 0.3 * x[1] * x[2] + 0.5 * x[0] - 0.4 * x[2]
        weights.append(np.exp(energy))
    assert world.law.probs == pytest.approx(np.array(weights) / sum(weights))


def test_ordered_pairs_count_twice() -> None:
    assert Ising(coupling=0.2, pair_convention="ordered").law.probs == pytest.approx(Ising(coupling=0.4).law.probs)


@pytest.mark.parametrize(("coupling", "share"), [(0.05, 0.167), (0.3, 0.517)])
def test_all_equal_states_have_the_known_share(coupling: float, share: float) -> None:
    probs = Ising(4, coupling).law.probs
    assert probs[0] + probs[-1] == pytest.approx(share, abs=6e-4)


def test_edges_can_be_a_cycle_a_path_or_given() -> None:
    assert Ising(4, edges="cycle").pairs == [(0, 1), (0, 3), (1, 2), (2, 3)]
    assert Ising(4, edges="path").pairs == [(0, 1), (1, 2), (2, 3)]
    assert Ising(4, edges=((0, 2),)).matrix[2, 0] == 0.3


@pytest.mark.parametrize("world", [Ising(4, 0.4, 0.1, hidden=2), DiscreteFamily(3, 3, hidden=2)])
def test_the_oracle_is_the_conditional_frequency_of_hidden_tokens(world: Ising) -> None:
    batch = world.sample(60_000, rng=sl.rng(0))
    assert bool(((batch.inputs == world.mask_token).sum(1) == 2).all())
    key = (batch.inputs * world.vocab ** torch.arange(batch.inputs.shape[1])).sum(1)
    rows = key == key[0]
    site = int(batch.mask[0].int().argmax())
    seen = torch.bincount(batch.targets[rows, site], minlength=world.symbols) / rows.sum()
    expected = world.oracle(batch[:1]).exp()[0, site]
    assert torch.allclose(seen.double(), expected, atol=3 / float(rows.sum()) ** 0.5)


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(BadInput, match="coupling"):
        Ising(3, (0.1, 0.2))
    with pytest.raises(BadInput, match="theta"):
        DiscreteFamily(3, 2, theta=(0.1, 0.2))
    with pytest.raises(BadInput, match="edges"):
        Ising(3, edges=((2, 1),))
