"""The pretended GPU refuses what a real one refuses, and computes the same numbers."""

from __future__ import annotations

import pytest
import torch
from pretended_gpu import WrongDevice, pretended_gpu

from sandlab.random import rng


def test_tensors_know_their_device_through_views_weights_gradients_and_vmap() -> None:
    with pretended_gpu():
        source = rng(0, device="cuda")
        drawn = torch.rand(3, 4, generator=source, device=source.device)
        layer = torch.nn.Linear(4, 2).to("cuda")
        layer(drawn).sum().backward()
        assert layer.weight.grad is not None
        found = [drawn, drawn[:1], drawn.mT @ drawn, layer.weight, layer.weight.grad, torch.vmap(torch.sum)(drawn)]
        assert {each.device.type for each in found} == {"cuda"}
        assert {each.device.type for each in (drawn.cpu(), torch.ones(3), torch.as_tensor([1.0]))} == {"cpu"}
        assert torch.zeros_like(drawn).device == drawn.new_ones(2).device == drawn.device
    assert torch.ones(3, 4).device.type == "cpu"


def test_two_devices_in_one_operation_are_refused_and_single_numbers_and_indices_are_not() -> None:
    with pretended_gpu():
        there, here = torch.ones(3, device="cuda"), torch.ones(3)
        with pytest.raises(WrongDevice, match="two devices"):
            there + here
        assert (there * torch.tensor(2.0))[torch.tensor([0, 2])].device.type == "cuda"
        assert (there.cpu() + here).tolist() == [2.0] * 3


def test_arrays_and_draws_need_the_right_device() -> None:
    with pretended_gpu():
        with pytest.raises(WrongDevice, match="numpy"):
            torch.ones(3, device="cuda").numpy()
        with pytest.raises(WrongDevice, match="generator"):
            torch.rand(3, generator=rng(0), device="cuda")
        with pytest.raises(WrongDevice, match="generator"):
            torch.multinomial(torch.ones(3), 1, generator=rng(0, device="cuda"))
