"""Exact transformers for flip-flop languages (Liu et al. 2023, Proposition 3 and the lemma on the memory unit)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sandlab.circuits.automata.step_by_step import rnn_circuit
from sandlab.circuits.builder import CircuitBuilder, Entries, Head
from sandlab.circuits.gadgets import Network
from sandlab.circuits.targets import to_transformer
from sandlab.errors import integer, require
from sandlab.models.recurrent import RNN
from sandlab.models.transformer import Transformer
from sandlab.registry import register
from sandlab.worlds.automata.machine import Automaton

__all__ = ["flip_flop_parser", "flip_flop_transformer", "memory_transformer", "parser_machine"]


@register("circuits")
def flip_flop_transformer(length: int, *, sharpness: float | None = None) -> Transformer:
    """Two layers, one head: every read of a flip-flop string of up to `length` tokens is answered exactly.

    Layer 1 marks a token when it or its predecessor is w: scores (c/T)(1.5·1[x_j = w] + j) let position i attend to
    i−1 if that is a write, else to itself. Layer 2 scores c(mark_j + j/T): its winner is the latest marked position,
    the symbol of the most recent write, whose bit it copies. Between them a width-3 feed-forward block rounds,
    φ(z) = 4(ReLU(z − ⅜) − ReLU(z − ⅝)), so the result is exact although softmax is not.

    `sharpness` is c; c = 2T ln(16T) keeps the stray mass of both layers below ⅛. With c well below T the circuit
    fails: half of all reads are wrong at c = T, T = 512. No norm, no score scaling, causal mask needed. The tokens are
    those of `FlipFlop`: w, r, i, 0, 1.

    Source: Liu et al. 2023, Prop. 3 (whose print lacks the causal mask).
    """
    integer("length", length, low=2)
    c = 2 * length * math.log(16 * length) if sharpness is None else sharpness
    circuit = CircuitBuilder(5, length)
    write = circuit.channel("write", letters=[1, 0, 0, 0, 0])
    circuit.channel("read or ignore", letters=[0, 1, 1, 0, 0])
    _, bit = circuit.channels("bit", 2, letters=np.eye(5)[:, 3:])
    one, late = _common_channels(circuit)
    mark, answer = circuit.channel("mark"), circuit.channel("answer")
    _copy_latest(circuit, 0, [(write, 0, 1.5 * c / length), (late, 1, c)], [write], [mark])
    _copy_latest(circuit, 1, [(mark, 0, c), (late, 1, c)], [bit], [answer])
    circuit.read_out([one, answer], np.array([[-50.0, 0.0]] * 3 + [[25.0, -50.0], [-25.0, 50.0]]))
    return to_transformer(circuit)


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
    circuit = CircuitBuilder(symbols + 1, length)
    symbol = circuit.channels("symbol", symbols, letters=np.eye(symbols + 1)[:, 1:])
    idle = circuit.channel("no-op", letters=np.eye(symbols + 1)[0])
    _, late = _common_channels(circuit)
    answer = circuit.channels("answer", symbols)
    _copy_latest(circuit, 0, [(idle, 0, -2 * c), (late, 1, c)], symbol, answer)
    circuit.read_out(answer, 50.0 * np.eye(symbols))
    return to_transformer(circuit)


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


def _common_channels(circuit: CircuitBuilder) -> tuple[int, int]:
    """A channel "one" that is always 1, and one that holds j/T at position j (from 1)."""
    one = circuit.channel("one", letters=1.0)
    return one, circuit.channel("late", positions=np.arange(1, circuit.length + 1) / circuit.length)


def _copy_latest(circuit: CircuitBuilder, depth: int, key: Entries, read: Sequence[int], write: Sequence[int]) -> None:
    """A layer that copies channels from the key with the largest score and rounds them to 0 or 1.

    Every query is (1, 1), so a key's score is the sum of its two dimensions. The feed-forward block adds φ(z) − z.
    """
    layer = circuit.layer(depth)
    query = [(circuit.names.index("one"), range(2), np.ones((1, 2)))]
    layer.heads = [Head.copying(read, write, query=query, key=key, add=True)]
    rounding = Network([np.ones((3, 1)), [[4.0, -4.0, -1.0]]], [[-0.375, -0.625, 0.0]])
    for channel in write:
        layer.feed(rounding, [channel], [channel], add=True)
