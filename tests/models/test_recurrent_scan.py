"""The LSTM as one operation: the same states and gradients as step by step."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

from sandlab.models import attention
from sandlab.models._parts.recurrent_scan import lstm_scan
from sandlab.models.attention import Attention
from sandlab.models.recurrent import LSTMConfig, LSTMLayer, RNNConfig, RNNLayer


def test_the_gradient_written_by_hand_is_the_derivative() -> None:
    members, time, batch, width = 2, 4, 3, 2
    rng = torch.Generator().manual_seed(0)
    shapes = [(members, time, batch, 4 * width), (members, 4 * width, width), *[(members, batch, width)] * 2]
    values = [torch.randn(shape, dtype=torch.float64, generator=rng, requires_grad=True) for shape in shapes]
    assert gradcheck(lstm_scan, values)


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("members", [0, 1, 3])
def test_at_once_equals_step_by_step(members: int, bias: bool, start: bool) -> None:
    torch.manual_seed(members)
    layer = LSTMLayer(5, LSTMConfig(vocab=5, width=4, bias=bias, torch_start=start)).double()
    if members:
        for parameter in layer.parameters():
            parameter.data = torch.randn(members, *parameter.shape, dtype=torch.float64)
    lead = (members, 2) if members else (2,)
    x = torch.randn(*lead, 7, 5, dtype=torch.float64, requires_grad=True)
    state = tuple(torch.randn(*lead, 4, dtype=torch.float64) for _ in range(2))
    inputs = [x, *layer.parameters()]
    found = []
    for way in (layer._at_once, layer._step_by_step):
        every, (hidden, cell) = way(x, state)
        loss = (every**2).sum() + (hidden * cell).sum()
        found.append([every, hidden, cell, *torch.autograd.grad(loss, inputs)])
    for fast, plain in zip(*found):
        torch.testing.assert_close(fast, plain, rtol=0, atol=1e-12)


def test_fused_attention_takes_more_examples_than_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer = Attention(8, heads=2, head_width=4, length=5)
    x = torch.randn(7, 5, 8)
    layer.fused = True
    whole = layer(x)
    monkeypatch.setattr(attention, "MOST_BLOCKS", 5)
    torch.testing.assert_close(layer(x), whole)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("members", [0, 1])
def test_the_elman_layer_at_once_equals_step_by_step(members: int, activation: str) -> None:
    torch.manual_seed(members)
    layer = RNNLayer(5, RNNConfig(vocab=5, width=4, activation=activation)).double()
    if members:
        for parameter in layer.parameters():
            parameter.data = parameter.data.unsqueeze(0)
    lead = (members, 2) if members else (2,)
    x, state = torch.randn(*lead, 7, 5, dtype=torch.float64), (torch.randn(*lead, 4, dtype=torch.float64),)
    for found, plain in zip(layer._at_once(x, state), layer._step_by_step(x, state)):
        torch.testing.assert_close(found, plain, rtol=0, atol=1e-12)
