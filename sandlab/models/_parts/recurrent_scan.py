"""Recurrent layers over a whole sequence as one operation: for an LSTM two kernels per step forwards, two backwards.

Written step by step an LSTM is some twenty small kernels per step, and a GPU waits for the launch of each. Here the
members' gates are one batched product and one fused cell, the gradient of the weights is one product over all steps at
the end; one model alone goes to cuDNN. Where they may, two kernels of our own run through all steps (lstm_on_chip.py).
Rows of the weights are i, f, g, o, as torch has them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sandlab.models._parts import lstm_on_chip

__all__ = ["cudnn_lstm", "cudnn_rnn", "lstm_scan", "torch_gate_order"]


def torch_gate_order(rows: Tensor, width: int, axis: int) -> Tensor:
    """Rows i, f, o, g (as our weights have them) in the order i, f, g, o."""
    first, show, tanh = rows.split([2 * width, width, width], axis)
    return torch.cat([first, tanh, show], axis)


def lstm_scan(drive: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """All hidden states (member, time, batch, width) and the last cell.

    drive   (member, time, batch, 4 width): W₁ x_t + b;   weight (member, 4 width, width): W₂
    hidden, cell   (member, batch, width): the states before the first step
    """
    way = lstm_on_chip.scan if lstm_on_chip.serves(drive, weight, _Scan.apply) else _Scan.apply
    return way(drive, weight, hidden, cell)


def cudnn_lstm(
    x: Tensor, state: tuple[Tensor, Tensor], weights: tuple[Tensor, Tensor], bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """One layer of one model on (batch, time, inputs): all hidden states, the last one, the last cell."""
    start = tuple(each.unsqueeze(0).contiguous() for each in state)
    every, hidden, cell = torch.lstm(
        x, start, _in_one_piece(weights, bias), bias is not None, 1, 0.0, torch.is_grad_enabled(), False, True
    )
    return every, hidden[0], cell[0]


def cudnn_rnn(
    activation: str, x: Tensor, hidden: Tensor, weights: tuple[Tensor, Tensor], bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """One Elman layer of one model on (batch, time, inputs): all hidden states, and the last one."""
    run = torch.rnn_tanh if activation == "tanh" else torch.rnn_relu
    start = hidden.unsqueeze(0).contiguous()
    every, last = run(
        x, start, _in_one_piece(weights, bias), bias is not None, 1, 0.0, torch.is_grad_enabled(), False, True
    )
    return every, last[0]


def _in_one_piece(weights: tuple[Tensor, Tensor], bias: Tensor | None) -> list[Tensor]:
    """Weights and biases as views of one tensor, as cuDNN wants them; torch has a second bias, here zero."""
    parts = [*weights] if bias is None else [*weights, bias, torch.zeros_like(bias)]
    whole = torch.cat([part.reshape(-1) for part in parts])
    return [piece.view(part.shape) for piece, part in zip(whole.split([part.numel() for part in parts]), parts)]


class _Scan(torch.autograd.Function):
    """Runs in the numbers' own format: a bf16 context does not round the state that is carried along."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx: Any, drive: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        across, drives = weight.mT, drive.transpose(0, 1).contiguous()
        states, cells, kept = [hidden], [cell], []
        for pushed in drives:
            hidden, cell, workspace = _cell(pushed, torch.bmm(hidden, across), cell)
            states.append(hidden)
            cells.append(cell)
            kept.append(workspace)
        every = torch.stack(states, 1)
        ctx.save_for_backward(weight, every, *cells, *kept)
        return every[:, 1:].contiguous(), cell

    @staticmethod
    @once_differentiable
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(  # type: ignore[override]
        ctx: Any, *gradients: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        weight, every, *rest = ctx.saved_tensors
        sent, to_cell = gradients[0].transpose(0, 1).contiguous(), gradients[1]
        time = len(sent)
        cells, kept = rest[: time + 1], rest[time + 1 :]
        to_hidden, to_gates = torch.zeros_like(every[:, 0]), []
        for step in reversed(range(time)):
            gates, to_cell = _cell_backward(to_hidden + sent[step], to_cell, cells[step], cells[step + 1], kept[step])
            to_hidden = torch.bmm(gates, weight)
            to_gates.append(gates)
        by_member = torch.stack(to_gates[::-1], 1)
        to_weight = torch.bmm(by_member.flatten(1, 2).mT, every[:, :-1].flatten(1, 2))
        return by_member, to_weight, to_hidden, to_cell


def _cell(pushed: Tensor, carried: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """h_t, c_t and what the backward pass needs, from the two parts of the gates before their nonlinearities."""
    if pushed.is_cuda:
        rows = [each.flatten(0, 1) for each in (pushed, carried, cell)]
        found = torch.ops.aten._thnn_fused_lstm_cell(*rows)
        return found[0].view_as(cell), found[1].view_as(cell), found[2]
    take, keep, tanh, show = (pushed + carried).chunk(4, -1)
    take, keep, tanh, show = take.sigmoid(), keep.sigmoid(), tanh.tanh(), show.sigmoid()
    fresh = keep * cell + take * tanh
    return show * fresh.tanh(), fresh, torch.cat([take, keep, tanh, show], -1)


def _cell_backward(to_hidden: Tensor, to_cell: Tensor, before: Tensor, after: Tensor, kept: Tensor) -> list[Tensor]:
    """Gradients of the gates and of c_{t−1}."""
    if to_hidden.is_cuda:
        flat = [each.reshape(-1, each.shape[-1]) for each in (to_hidden, to_cell, before, after)]
        gates, cell, _ = torch.ops.aten._thnn_fused_lstm_cell_backward_impl(*flat, kept, False)
        return [gates.view(*to_hidden.shape[:-1], -1), cell.view_as(before)]
    take, keep, tanh, show = kept.chunk(4, -1)
    shown = after.tanh()
    inside = to_cell + to_hidden * show * (1 - shown**2)
    gates = [
        inside * tanh * take * (1 - take),
        inside * before * keep * (1 - keep),
        inside * take * (1 - tanh**2),
        to_hidden * shown * show * (1 - show),
    ]
    return [torch.cat(gates, -1), inside * keep]
