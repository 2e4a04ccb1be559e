"""Recurrent networks: Elman's and the LSTM, with cells written out so that every state has a name."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import choice
from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models._parts.recurrent_scan import cudnn_lstm, cudnn_rnn, lstm_scan, torch_gate_order
from sandlab.models._parts.sequence import SequenceConfig, SequenceLayer, SequenceModel, State, flat, product_sum
from sandlab.models.base import configured
from sandlab.models.layers import HookPoint, Linear, align, linear
from sandlab.registry import register

__all__ = ["LSTM", "RNN", "LSTMConfig", "LSTMLayer", "RNNConfig", "RNNLayer"]

RECURRENT_STARTS = ("normal", "orthogonal", "identity")


@dataclass(frozen=True, kw_only=True)
class RNNConfig(SequenceConfig):
    """Options of the Elman network besides those of every sequence model.

    width            units of the hidden state of each layer
    activation       "tanh", "relu", "identity" (a linear recurrence), …
    recurrent_start  of W₂: "normal" N(0, 1/width) (or init_std), "orthogonal" or "identity"
    """

    activation: str = "tanh"
    recurrent_start: str = "normal"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("activation", self.activation, ACTIVATIONS)
        choice("recurrent_start", self.recurrent_start, RECURRENT_STARTS)


@dataclass(frozen=True, kw_only=True)
class LSTMConfig(SequenceConfig):
    """Options of the LSTM besides those of every sequence model.

    width            cells of each layer
    recurrent_start  of each gate's recurrent matrix: "normal" N(0, 1/width) (or init_std), "orthogonal" or "identity"
    forget_bias      initial bias of the forget gate: above 0 the cell remembers at first
    torch_start      size and initial weights of `torch.nn.LSTM`: a second bias per gate, everything inside drawn
                     uniformly from ±1/√width; the two options above are then not used
    """

    recurrent_start: str = "normal"
    forget_bias: float = 1.0
    torch_start: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("recurrent_start", self.recurrent_start, RECURRENT_STARTS)
        self.check_numbers("forget_bias")


class RNNLayer(SequenceLayer):
    """h_t = φ(W₁ x_t + b + W₂ h_{t−1}), h₀ = 0.

    `drive` is W₁ x + b for all steps at once, `state` is h_t step by step (recorded as `state#0`, `state#1`, …; a
    patched state enters the next step), `hidden` holds all states of the sequence.
    """

    def __init__(self, inputs: int, config: RNNConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.drive = Linear(inputs, config.width, bias=config.bias, std=config.init_std)
        self.weight = nn.Parameter(recurrent_matrix(config.width, config.recurrent_start, config.init_std))
        self.state, self.hidden = HookPoint(), HookPoint()

    def advance(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        alone = self.weight.ndim == 2 or len(self.weight) == 1
        unseen = not (self.state.hooked or self.drive._forward_hooks)
        known = self.activation in ("tanh", "relu")
        if x.is_cuda and alone and unseen and known and not torch.compiler.is_compiling():
            return self._at_once(x, state)
        return self._step_by_step(x, state)

    def _at_once(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """The same by cuDNN, for one model and without a name for each step's state."""
        width, lead = self.weight.shape[-1], x.shape[:-2]
        pushed, recurrent = (each.reshape(each.shape[-2:]) for each in (self.drive.weight, self.weight))
        bias = None if self.drive.bias is None else self.drive.bias.reshape(-1)
        start = x.new_zeros(*lead, width) if state is None else state[0]
        every, hidden = cudnn_rnn(
            self.activation, x.reshape(-1, *x.shape[-2:]), start.reshape(-1, width), (pushed, recurrent), bias
        )
        return self.hidden(every.reshape(*lead, -1, width)), (hidden.reshape(*lead, width),)

    def _step_by_step(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        phi, weight, lead = ACTIVATIONS[self.activation], self.weight, x.shape[:-2]
        drive = flat(self.drive(x), weight)
        hidden = _start(drive, state, 0, weight)
        steps = []
        for pushed in drive.unbind(-2):
            hidden = self.state(phi(product_sum(pushed, hidden, weight)))
            steps.append(hidden)
        width = weight.shape[-1]
        return self.hidden(torch.stack(steps, -2).reshape(*lead, -1, width)), (hidden.reshape(*lead, width),)


class LSTMLayer(SequenceLayer):
    """Long short-term memory (Hochreiter and Schmidhuber 1997, with a forget gate).

        i, f, o = σ(W₁ x_t + b + W₂ h_{t−1})    g = tanh(the same with its own weights)
        c_t = f ⊙ c_{t−1} + i ⊙ g               h_t = o ⊙ tanh(c_t)

    The rows of `drive.weight` (W₁) and `weight` (W₂) are i, f, o, g in this order. `state` and `cell` are h_t and c_t
    step by step, `hidden` holds all h_t of the sequence.
    """

    def __init__(self, inputs: int, config: LSTMConfig) -> None:
        super().__init__()
        width = config.width
        self.width = width
        self.drive = Linear(inputs, 4 * width, bias=config.bias, std=config.init_std)
        gates = [recurrent_matrix(width, config.recurrent_start, config.init_std) for _ in range(4)]
        self.weight = nn.Parameter(torch.cat(gates))
        if self.drive.bias is not None:
            nn.init.constant_(self.drive.bias[width : 2 * width], config.forget_bias)
        self.second_bias = nn.Parameter(torch.zeros(4 * width)) if config.torch_start and config.bias else None
        if config.torch_start:
            for parameter in self.parameters():
                nn.init.uniform_(parameter, -(width**-0.5), width**-0.5)
        self.cell, self.state, self.hidden = HookPoint(), HookPoint(), HookPoint()

    def advance(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        unseen = not (self.cell.hooked or self.state.hooked or self.drive._forward_hooks)
        if x.is_cuda and unseen and not torch.compiler.is_compiling():
            return self._at_once(x, state)
        return self._step_by_step(x, state)

    def _at_once(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """The same without a name for each step's state: cuDNN for one model, one operation for many."""
        width, lead = self.width, x.shape[:-2]
        pushed, recurrent = (torch_gate_order(each, width, -2) for each in (self.drive.weight, self.weight))
        bias = self._bias()
        bias = None if bias is None else torch_gate_order(bias, width, -1)
        examples = flat(x, self.weight)
        hidden, cell = _start(examples, state, 0, self.weight), _start(examples, state, 1, self.weight)
        if self.weight.ndim == 2:
            every, hidden, cell = cudnn_lstm(examples, (hidden, cell), (pushed, recurrent), bias)
        elif len(self.weight) == 1:
            one = None if bias is None else bias[0]
            every, hidden, cell = cudnn_lstm(examples[0], (hidden[0], cell[0]), (pushed[0], recurrent[0]), one)
        else:
            drive = linear(examples.transpose(1, 2), pushed, bias)
            every, cell = lstm_scan(drive, recurrent, hidden, cell)
            every, hidden = every.transpose(1, 2), every[:, -1]
        sequence = self.hidden(every.reshape(*lead, -1, width))
        return sequence, (hidden.reshape(*lead, width), cell.reshape(*lead, width))

    def _bias(self) -> Tensor | None:
        first, second = self.drive.bias, self.second_bias
        return first if first is None or second is None else first + second

    def _step_by_step(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        weight, width, lead = self.weight, self.width, x.shape[:-2]
        driven = self.drive(x) if self.second_bias is None else self.drive(x) + align(self.second_bias, x, 1)
        drive = flat(driven, weight)
        hidden, cell = _start(drive, state, 0, weight), _start(drive, state, 1, weight)
        steps = []
        for pushed in drive.unbind(-2):
            gates = product_sum(pushed, hidden, weight)
            take, keep, show = gates[..., : 3 * width].sigmoid().chunk(3, -1)
            cell = self.cell(torch.addcmul(keep * cell, take, gates[..., 3 * width :].tanh()))
            hidden = self.state(show * cell.tanh())
            steps.append(hidden)
        sequence = self.hidden(torch.stack(steps, -2).reshape(*lead, -1, width))
        return sequence, (hidden.reshape(*lead, width), cell.reshape(*lead, width))


@register("models")
class RNN(SequenceModel):
    """Elman network: h_t = φ(W₁ x_t + b + W₂ h_{t−1}), logits W h_t; with φ the identity, a linear recurrence.

    Activations: `embed`, `layers.i.{drive,state,hidden}`, `logits`. `advance` reads a sequence in pieces.

    Source: Elman 1990, "Finding structure in time".
    """

    config: RNNConfig

    @configured(RNNConfig)
    def __init__(self, config: RNNConfig) -> None:
        super().__init__(config, [RNNLayer(inputs, config) for inputs in _input_widths(config)])


@register("models")
class LSTM(SequenceModel):
    """Long short-term memory: gates decide what the cell keeps, takes and shows.

    Activations: `embed`, `layers.i.{drive,cell,state,hidden}`, `logits`. `advance` reads a sequence in pieces.

    Source: Hochreiter and Schmidhuber 1997; Gers, Schmidhuber and Cummins 2000 (forget gate).
    """

    config: LSTMConfig

    @configured(LSTMConfig)
    def __init__(self, config: LSTMConfig) -> None:
        super().__init__(config, [LSTMLayer(inputs, config) for inputs in _input_widths(config)])


def recurrent_matrix(width: int, start: str, std: float | None) -> Float[Tensor, "width width"]:
    """Initial recurrent weights of the named kind."""
    if start == "identity":
        return torch.eye(width)
    matrix = torch.empty(width, width)
    if start == "orthogonal":
        return nn.init.orthogonal_(matrix)
    return nn.init.normal_(matrix, std=1 / math.sqrt(width) if std is None else std)


def _input_widths(config: SequenceConfig) -> list[int]:
    return [config.input_width] + [config.width] * (config.layers - 1)


def _start(drive: Tensor, state: State | None, which: int, weight: Tensor) -> Tensor:
    """The state before the first step: zero, or what an earlier piece of the sequence left."""
    width = weight.shape[-1]
    rows = drive.shape[:-2]
    return drive.new_zeros(*rows, width) if state is None else state[which].reshape(*rows, width)
