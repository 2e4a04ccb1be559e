"""A world draws, and its oracle and baselines answer, on the device of the generator."""

from __future__ import annotations

import contextlib

import pytest
import torch
from pretended_gpu import pretended_gpu

import sandlab as sl
from sandlab.random import rng


@pytest.mark.parametrize("name", sl.names("worlds"))
def test_everything_of_a_world_lies_on_the_device_of_the_generator(name: str) -> None:
    world = sl.get("worlds", name)()
    with pretended_gpu():
        batch = world.sample(4, rng=rng(0, device="cuda"))
        parts = [batch.inputs, batch.targets, batch.mask, *batch.truth.values()]
        predictions = [predict(batch) for predict in world.baselines().values()]
        with contextlib.suppress(NotImplementedError):  # a world without an oracle
            predictions.append(world.oracle(batch))
        tensors = [each for each in (*parts, *predictions) if isinstance(each, torch.Tensor) and each.numel()]
        assert {each.device.type for each in tensors} == {"cuda"}
