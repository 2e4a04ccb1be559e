"""The parallel scan equals the recurrence written as a loop."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sandlab.models._parts.scan import linear_recurrence
from sandlab.models.base import seeded


def by_steps(gates: Tensor, drive: Tensor) -> Tensor:
    hidden, steps = torch.zeros_like(drive[..., 0, :]), []
    for t in range(drive.shape[-2]):
        hidden = gates[..., t, :] * hidden + drive[..., t, :]
        steps.append(hidden)
    return torch.stack(steps, -2)


@given(time=st.integers(1, 70), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_the_scan_equals_the_loop_for_every_length(time: int, seed: int) -> None:
    with seeded(seed):
        gates, drive = 2 * torch.rand(2, 3, time, 4, dtype=torch.float64) - 1, torch.randn(2, 3, time, 4).double()
    expected = by_steps(gates, drive)
    for method in ("scan", "steps", "auto"):
        torch.testing.assert_close(linear_recurrence(gates, drive, method=method), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("time", [1, 2, 5, 8])
@pytest.mark.parametrize("method", ["scan", "steps"])
def test_first_and_second_derivatives_are_right(time: int, method: str) -> None:
    def recurrence(gates: Tensor, drive: Tensor) -> Tensor:
        return linear_recurrence(gates, drive, method=method)

    with seeded(time):
        gates = torch.rand(2, time, 3, dtype=torch.float64, requires_grad=True)
        drive = torch.randn(2, time, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(recurrence, (gates, drive))
    assert torch.autograd.gradgradcheck(recurrence, (gates, drive))


@pytest.mark.parametrize("method", ["scan", "steps"])
def test_gates_broadcast_and_vmap_maps(method: str) -> None:
    gates, drive = torch.rand(3), torch.randn(2, 9, 3)
    got = linear_recurrence(gates, drive, method=method)
    torch.testing.assert_close(got, by_steps(gates.expand(2, 9, 3), drive))
    many = torch.rand(4, 1, 9, 3, requires_grad=True)
    mapped = torch.vmap(lambda a, b: linear_recurrence(a, b, method=method), in_dims=(0, None))(many, drive)
    torch.testing.assert_close(mapped, by_steps(many.expand(4, 2, 9, 3), drive.expand(4, 2, 9, 3)))
    mapped.sum().backward()
    sent = many.grad.clone()
    many.grad = None
    by_steps(many.expand(4, 2, 9, 3), drive.expand(4, 2, 9, 3)).sum().backward()
    torch.testing.assert_close(sent, many.grad)


@pytest.mark.parametrize("method", ["scan", "steps"])
def test_gates_of_plus_and_minus_one_keep_parity_exactly(method: str) -> None:
    with seeded(3):
        bits = torch.randint(2, (50, 256))
    drive = torch.zeros(50, 256, 1)
    gates = (1.0 - 2 * bits).unsqueeze(-1)
    drive[:, 0] = gates[:, 0]  # the state before the first step is 1
    parity = (1 - linear_recurrence(gates, drive, method=method)) / 2
    assert torch.equal(parity.squeeze(-1).long(), bits.cumsum(-1) % 2)
