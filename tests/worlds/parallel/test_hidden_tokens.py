"""Strings of another world with hidden tokens."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.worlds.dyck.language import Dyck
from sandlab.worlds.parallel.hidden_tokens import HiddenTokens


def test_hidden_tokens_are_those_of_the_other_world() -> None:
    world = HiddenTokens()
    batch = world.sample(300, rng=sl.rng(0))
    assert bool(torch.as_tensor(world.world.accepts(batch.targets)).all())
    assert bool((batch.inputs[batch.mask] == world.mask_token).all())
    assert bool((batch.inputs == batch.targets)[~batch.mask].all())
    assert set(batch.mask.sum(1).tolist()) == set(range(1, 11))


def test_a_fixed_number_can_be_hidden() -> None:
    assert set(HiddenTokens(hidden=3).sample(20, rng=sl.rng(0)).mask.sum(1).tolist()) == {3}


def test_a_world_with_other_tokens_is_refused() -> None:
    with pytest.raises(BadInput, match="tokens below 2"):
        HiddenTokens(Dyck(types=2, length=10, words="complete"), alphabet=2).sample(8, rng=sl.rng(0))
