"""Copied brackets: targets are inputs, and the oracle knows them."""

import torch

import sandlab as sl
from sandlab.worlds.dyck.copying import DyckCopy


def test_targets_are_the_inputs_and_the_oracle_makes_no_error() -> None:
    world = DyckCopy(types=3, depth=2, length=9)
    batch = world.sample(5, rng=sl.rng(2))
    assert batch.inputs.shape == (5, 9) and bool(batch.mask.all())
    assert torch.equal(batch.inputs, batch.targets)
    assert torch.equal(world.oracle(batch).argmax(-1), batch.targets)
    assert world.optimal_loss(batch) == 0


def test_tokens_are_prefixes_of_the_language() -> None:
    world = DyckCopy()
    tokens = world.sample(20, rng=sl.rng(0)).inputs
    assert bool((tokens[:, 0] == 4).all())
    assert bool(sl.worlds.Dyck(length=27).accepts(tokens[:, 1:]).all())
