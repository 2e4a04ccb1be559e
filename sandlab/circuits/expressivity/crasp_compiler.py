"""C-RASP programs as the weights of a transformer.

A token that marks the beginning stands before the word. Uniform attention over the i + 1 tokens so far turns a truth
value P into (#P)/(i + 1), and the mark itself into 1/(i + 1): numbers of the program are held divided by i + 1, which
changes no comparison with zero. A comparison is a steep step of the feed-forward block, a conjunction one rectified
unit. No positions are used. Two numbers that differ do so by at least 1/(i + 1), so the steps' slope must grow with
the length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.expressivity._crasp_nodes import And, Choice, Count, Formula, Letter, Linear, Node, Not, Truth
from sandlab.circuits.expressivity.crasp import CRasp
from sandlab.circuits.gadgets import Network
from sandlab.circuits.targets import to_transformer
from sandlab.errors import integer
from sandlab.models.transformer import Transformer
from sandlab.registry import register

__all__ = ["compile_crasp", "run_compiled", "with_beginning"]


@dataclass(frozen=True)
class Held:
    """A value as a weighted sum of channels, and the half-layer after which it is there.

    Half-layers: 0 is the embedding, 2l + 1 the attention and 2l + 2 the feed-forward block of layer l.
    """

    weights: Mapping[int, float]
    ready: int

    def plus(self, other: Held, factor: float = 1.0) -> Held:
        merged = dict(self.weights)
        for channel, weight in other.weights.items():
            merged[channel] = merged.get(channel, 0.0) + factor * weight
        return Held(merged, max(self.ready, other.ready))

    def times(self, factor: float) -> Held:
        return Held({channel: factor * weight for channel, weight in self.weights.items()}, self.ready)


@dataclass
class _Head:
    """Counts that one layer's attention takes: what is summed, and the channel it goes to."""

    read: list[tuple[int, int, float]] = field(default_factory=list)
    write: list[int] = field(default_factory=list)


@register("circuits")
def compile_crasp(program: CRasp, length: int) -> Transformer:
    """A transformer (float64, causal softmax, no positions or norms) that gives the program's answer at each position.

    Inputs are words of at most `length` letters after the mark of the beginning (`with_beginning`); of the two classes,
    1 is "accepted". Layers: about the depth of the program's nested counts; width: one channel per letter and per
    operation.

    Source: Yang and Chiang 2024, Theorem "C-RASP into softmax transformers" (who bound the steps' slope by layer norm);
    Lindner et al. 2023 (Tracr) for the idea of a compiler.
    """
    integer("length", length, low=1)
    compiler = _Compiler(program, length)
    answer = compiler.formula(program.accept)
    compiler.place_heads()
    channels = list(answer.weights)
    weight = np.array([answer.weights[channel] for channel in channels])
    compiler.circuit.read_out(channels, np.stack([0 * weight, 2 * weight]), np.array([0.0, -1.0]))
    return to_transformer(compiler.circuit)


def with_beginning(tokens: Int[Tensor, "word time"], letters: int) -> Int[Tensor, "word longer"]:
    """The words with the mark of the beginning, token `letters`, before them."""
    return torch.cat([torch.full_like(tokens[:, :1], letters), tokens], 1)


def run_compiled(model: Transformer, tokens: Int[Tensor, "word time"]) -> Bool[Tensor, "word time"]:
    """The compiled program's answer at every position of the words."""
    with torch.no_grad():
        return model(with_beginning(tokens, model.config.vocab - 1))[:, 1:].argmax(-1) == 1


class _Compiler:
    def __init__(self, program: CRasp, length: int) -> None:
        self.letters, self.slope = program.letters, float(length + 1)
        self.at_empty = program.at_empty()
        size = len(self.letters)
        self.circuit = CircuitBuilder(size + 1, length + 1)
        self.one = self.circuit.channel("one", letters=1.0)
        self.begin = self.circuit.channel("beginning", letters=np.eye(size + 1)[size])
        self.symbols = self.circuit.channels("letter", size, letters=np.eye(size + 1)[:, :size])
        self.heads: dict[int, _Head] = {}
        self.known: dict[Node, Held] = {}
        self.share = self._attend(Held({self.begin: 1.0}, 0), "1/(i + 1)")

    # ------------------------------------------------------------------ truth values

    def formula(self, node: Formula) -> Held:
        if node not in self.known:
            self.known[node] = self._formula(node)
        return self.known[node]

    def _formula(self, node: Formula) -> Held:
        if isinstance(node, Letter):
            return Held({self.symbols[self.letters.index(node.symbol)]: 1.0}, 0)
        if isinstance(node, Truth):
            return Held({self.one: float(node.value)}, 0)
        if isinstance(node, Not):
            return Held({self.one: 1.0}, 0).plus(self.formula(node.inner), -1.0)
        if isinstance(node, And):
            total = _sum([self.formula(part) for part in node.parts])
            return self._feed([total], [1.0], [1.0 - len(node.parts)], [1.0], "and")
        # 0 up to −3/4 and 1 from −1/4 on: whole numbers are told apart however far rounding moves them.
        scaled = self.number(node.number).times(2 * self.slope)
        return self._feed([scaled], [1.0, 1.0], [1.5, 0.5], [1.0, -1.0], "comparison")

    # ------------------------------------------------------------------ numbers, divided by i + 1

    def number(self, number: Linear) -> Held:
        held = self.share.times(number.constant) if number.constant else Held({}, 0)
        for term, weight in number.terms:
            held = held.plus(self._term(term), weight)
        return held

    def _term(self, term: Count | Choice) -> Held:
        if term not in self.known:
            self.known[term] = self._choice(term) if isinstance(term, Choice) else self._count(term)
        return self.known[term]

    def _count(self, term: Count) -> Held:
        counted = self._attend(self.formula(term.inner), "count")
        # The mark is not a letter of the word: what the formula says there is known and taken away.
        return counted.plus(self.share, -1.0) if self.at_empty(term.inner) else counted

    def _choice(self, term: Choice) -> Held:
        """c ? x : y = (x − K(1 − c))₊ − (−x − K(1 − c))₊ + (y − Kc)₊ − (−y − Kc)₊ for |x|, |y| ≤ K."""
        bound = max(_bound(term.yes), _bound(term.no))
        held = self.formula(term.condition).times(bound)
        against = Held({self.one: bound}, 0).plus(held, -1.0)
        yes, no = self.number(term.yes), self.number(term.no)
        units = [
            value.times(sign).plus(block, -1.0) for value, block in ((yes, against), (no, held)) for sign in (1, -1)
        ]
        return self._feed(units, [1.0] * 4, [0.0] * 4, [1.0, -1.0, 1.0, -1.0], "choice")

    # ------------------------------------------------------------------ where values are made

    def _attend(self, held: Held, name: str) -> Held:
        """The average over all tokens so far, in the first layer whose attention sees the value."""
        layer = (held.ready + 1) // 2
        head, channel = self.heads.setdefault(layer, _Head()), self.circuit.channel(f"{name} {self.circuit.width}")
        dimension = len(head.write)
        head.read += [(source, dimension, weight) for source, weight in held.weights.items()]
        head.write.append(channel)
        return Held({channel: 1.0}, 2 * layer + 1)

    def _feed(
        self, inputs: Sequence[Held], gains: Sequence[float], biases: Sequence[float], out: Sequence[float], name: str
    ) -> Held:
        """Σ out · (gain · input + bias)₊, in the first layer whose feed-forward block sees the inputs."""
        layer = max(each.ready for each in inputs) // 2
        read = sorted({channel for each in inputs for channel in each.weights})
        rows = [inputs[unit if len(inputs) > 1 else 0] for unit in range(len(gains))]
        first = [[gain * row.weights.get(c, 0.0) for c in read] for gain, row in zip(gains, rows)]
        channel = self.circuit.channel(f"{name} {self.circuit.width}")
        network = Network([np.array(first), np.array([out])], [np.array(biases)])
        self.circuit.layer(layer).feed(network, read, [channel], add=True)
        return Held({channel: 1.0}, 2 * layer + 2)

    def place_heads(self) -> None:
        """Write the counts into the circuit: one head of uniform attention per layer."""
        for layer, head in self.heads.items():
            output = [(channel, dimension, 1.0) for dimension, channel in enumerate(head.write)]
            self.circuit.layer(layer).heads.append(Head(value=head.read, output=output, add=True))


def _sum(parts: Sequence[Held]) -> Held:
    total = Held({}, 0)
    for part in parts:
        total = total.plus(part)
    return total


def _bound(number: Linear) -> float:
    """A bound of |number|/(i + 1) at every position."""
    return abs(number.constant) + sum(
        abs(weight) * (1.0 if isinstance(term, Count) else max(_bound(term.yes), _bound(term.no)))
        for term, weight in number.terms
    )
