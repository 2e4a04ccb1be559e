"""Exact transformers for flip-flop languages (Liu et al. 2023, Propositions 3 and Lemma on the memory unit)."""

from __future__ import annotations

import math
from typing import Any

import torch

from sandlab.circuits.automata.step_by_step import rnn_circuit
from sandlab.errors import integer, require
from sandlab.models.recurrent import RNN
from sandlab.models.transformer import Transformer
from sandlab.registry import register
from sandlab.worlds.automata.machine import Automaton

__all__ = ["flip_flop_parser", "flip_flop_transformer", "memory_transformer", "parser_machine"]

WRITE_FLAG, OTHER_FLAG, BIT_0, BIT_1, ONE, PLACE, MARK, ANSWER = range(8)


@register("circuits")
def flip_flop_transformer(length: int, *, sharpness: float | None = None) -> Transformer:
    """Two layers, one head: every read of a flip-flop string of up to `length` tokens is answered exactly.

    Layer 1 marks a token when it or its predecessor is w: scores (c/T)(1.5·1[x_j = w] + j) let position i attend to
    i−1 if that is a write, else to itself. Layer 2 scores c(mark_j + j/T): its winner is the latest marked position,
    the symbol of the most recent write, whose bit it copies. Between them a width-3 feed-forward block rounds,
    φ(z) = 4(ReLU(z − ⅜) − ReLU(z − ⅝)), so nothing of the softmax's softness is left.

    `sharpness` is c; c = 2T ln(16T) keeps the stray mass of both layers below ⅛. With c well below T the circuit
    fails: half of all reads are wrong at c = T, T = 512. No norm, no score scaling, causal mask needed. The tokens are
    those of `FlipFlop`: w, r, i, 0, 1.

    Source: Liu et al. 2023, Prop. 3 (whose print lacks the causal mask).
    """
    integer("length", length, low=2)
    c = 2 * length * math.log(16 * length) if sharpness is None else sharpness
    model = _skeleton(vocab=5, length=length, layers=2, width=8, outputs=5)
    tokens = [(WRITE_FLAG,), (OTHER_FLAG,), (OTHER_FLAG,), (BIT_0,), (BIT_1,)]
    with torch.no_grad():
        for token, flags in enumerate(tokens):
            model.embedding.weight[token, [*flags, ONE]] = 1.0
        model.position.weight[:, PLACE] = torch.arange(1, length + 1) / length
        first, second = _layers(model)
        _ask_everywhere(first, ONE)
        first.attention.key.weight[0, WRITE_FLAG] = 1.5 * c / length
        first.attention.key.weight[1, PLACE] = c
        _carry(first, WRITE_FLAG, MARK)
        _round(first, MARK)
        _ask_everywhere(second, ONE)
        second.attention.key.weight[0, MARK] = c
        second.attention.key.weight[1, PLACE] = c
        _carry(second, BIT_1, ANSWER)
        _round(second, ANSWER)
        model.unembed.weight[:, ONE] = torch.tensor([-50.0, -50.0, -50.0, 25.0, -25.0])
        model.unembed.weight[:, ANSWER] = torch.tensor([0.0, 0.0, 0.0, -50.0, 50.0])
    return model


@register("circuits")
def memory_transformer(length: int, symbols: int = 2, *, sharpness: float | None = None) -> Transformer:
    """One layer, one head: the latest written symbol at every position of a `FlipFlopTransduction` input.

    Score c(j/T − 2·1[no-op]): the latest write wins, whatever lies between. The value is the one-hot symbol, rounded
    to 0 or 1 by the feed-forward block. c = T ln(16 n T) suffices (Liu et al. 2023, memory unit; the print has 1 for
    the factor 2).
    """
    integer("length", length, low=1)
    integer("symbols", symbols, low=2)
    c = length * math.log(16 * symbols * length) if sharpness is None else sharpness
    require(c > 0, "sharpness", c, "above 0")
    idle, one, place, answer = symbols, symbols + 1, symbols + 2, symbols + 3
    model = _skeleton(vocab=symbols + 1, length=length, layers=1, width=2 * symbols + 3, outputs=symbols)
    with torch.no_grad():
        model.embedding.weight[:, one] = 1.0
        model.embedding.weight[0, idle] = 1.0
        for symbol in range(symbols):
            model.embedding.weight[symbol + 1, symbol] = 1.0
        model.position.weight[:, place] = torch.arange(1, length + 1) / length
        (layer,) = _layers(model)
        _ask_everywhere(layer, one)
        layer.attention.key.weight[0, idle] = -2 * c
        layer.attention.key.weight[1, place] = c
        for symbol in range(symbols):
            layer.attention.value.weight[symbol, symbol] = 1.0
            layer.attention.output.weight[answer + symbol, symbol] = 1.0
        _round(layer, *range(answer, answer + symbols))
        model.unembed.weight[:, answer:] = 50.0 * torch.eye(symbols, dtype=torch.float64)
    return model


def parser_machine() -> Automaton:
    """The four-state automaton (stored bit, write pending) that reads a flip-flop string token by token.

    w: write becomes pending; a bit while pending: it is stored; anything else: nothing changes. What follows an r is
    the stored bit (Liu et al. 2023, Figure 1(b)).
    """
    rows = []
    for bit in (0, 1):
        for pending in (0, 1):
            stay = 2 * bit + pending
            rows.append((2 * bit + 1, stay, stay, 0 if pending else stay, 2 if pending else stay))
    names = ("0", "0, write pending", "1", "1, write pending")
    return Automaton(transitions=tuple(rows), observation=(0, 0, 1, 1), letter_names=tuple("wri01"), state_names=names)


@register("circuits")
def flip_flop_parser() -> RNN:
    """A recurrent network that knows the stored bit after every token of a flip-flop string of any length."""
    return rnn_circuit(parser_machine())


def _skeleton(*, vocab: int, length: int, layers: int, width: int, outputs: int) -> Transformer:
    """A float64 transformer with all weights zero: softmax attention without scaling, ReLU blocks, no norm."""
    head_width = max(2, outputs) if layers == 1 else 2
    rounded = outputs if layers == 1 else 1
    model = Transformer(
        vocab=vocab,
        outputs=outputs,
        length=length,
        layers=layers,
        heads=1,
        width=width,
        head_width=head_width,
        mlp="relu",
        mlp_width=3 * rounded,
        norm="none",
        positions="learned",
        scale=1.0,
    ).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    return model


def _layers(model: Transformer) -> list[Any]:
    return list(model.layers)


def _ask_everywhere(layer: Any, one: int) -> None:
    """Every query is (1, 1): a key's score is the sum of its two coordinates."""
    layer.attention.query.weight[:2, one] = 1.0


def _carry(layer: Any, source: int, target: int) -> None:
    """The attended token's coordinate `source` is added to this token's coordinate `target`."""
    layer.attention.value.weight[0, source] = 1.0
    layer.attention.output.weight[target, 0] = 1.0


def _round(layer: Any, *coordinates: int) -> None:
    """Add φ(z) − z to each coordinate z ≥ 0: what was within ⅜ of 0 or 1 becomes 0 or 1."""
    for place, coordinate in enumerate(coordinates):
        units = slice(3 * place, 3 * place + 3)
        mlp = layer.mlp
        mlp.up_proj.weight[units, coordinate] = 1.0
        mlp.up_proj.bias[units] = torch.tensor([-0.375, -0.625, 0.0], dtype=torch.float64)
        mlp.down_proj.weight[coordinate, units] = torch.tensor([4.0, -4.0, -1.0], dtype=torch.float64)
