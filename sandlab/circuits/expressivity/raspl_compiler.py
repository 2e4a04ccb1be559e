"""RASP-L programs as the weights of a transformer, for one length.

Every value is one-hot over the numbers it can take, found by following the program (the idea of Tracr). A selection
is a bilinear score of one-hot keys and queries; the largest or smallest selected value wins by a small extra score; a
width is read off the weight that is left for a mark before the word; a map position by position is one unit per pair
of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.expressivity._raspl_nodes import (
    OPERATORS,
    Aggregate,
    Map,
    Number,
    Select,
    Sequence_,
    Source,
    Width,
    apply,
)
from sandlab.circuits.expressivity.crasp_compiler import with_beginning
from sandlab.circuits.expressivity.raspl import RaspL
from sandlab.circuits.gadgets import Network, interpolate
from sandlab.circuits.targets import to_transformer
from sandlab.errors import BadInput, integer
from sandlab.models.transformer import Transformer
from sandlab.registry import register

__all__ = ["compile_raspl", "run_compiled_raspl"]

MOST_PAIRS = 20_000
"""Largest table of one operation."""

EXTRA = 0.25
"""What the order of values may add to a score, in units of one condition."""


@dataclass(frozen=True)
class OneHot:
    """A value as one channel per number it can take (all 0 at the mark), and the half-layer after which it is there."""

    values: tuple[int, ...]
    channels: tuple[int, ...]
    ready: int


@register("circuits")
def compile_raspl(program: RaspL, vocab: int, length: int) -> Transformer:
    """A transformer (float64) that gives the program's answer, a class, at each position of words of up to `length`.

    Compiled are programs with selections, "max", "min", widths, maps and `where`; a "mean" has no finite set of
    values and is refused. Inputs have the mark of the beginning before the word (`with_beginning`). Legal programs
    and those with arithmetic on indices are compiled alike: at one length a table says everything, and only its size
    tells them apart.

    Source: Zhou et al. 2023 (RASP-L); Lindner et al. 2023 (Tracr); Weiss, Goldberg and Yahav 2021 (RASP).
    """
    integer("vocab", vocab, low=1)
    integer("length", length, low=1)
    compiler = _Compiler(vocab, length)
    answer = compiler.value(program.answer)
    weight = np.zeros((max(answer.values) + 1, len(answer.values)))
    for column, value in enumerate(answer.values):
        if value >= 0:
            weight[value, column] = 1.0
    compiler.circuit.read_out(list(answer.channels), weight)
    return to_transformer(compiler.circuit)


def run_compiled_raspl(model: Transformer, tokens: Int[Tensor, "word time"]) -> Int[Tensor, "word time"]:
    """The compiled program's answer at every position of the words."""
    with torch.no_grad():
        return model(with_beginning(tokens, model.config.vocab - 1))[:, 1:].argmax(-1)


class _Compiler:
    def __init__(self, vocab: int, length: int) -> None:
        self.length = length
        self.circuit = CircuitBuilder(vocab + 1, length + 1)
        hot = np.eye(vocab + 1)
        self.one = self.circuit.channel("one", letters=1.0)
        self.begin = self.circuit.channel("beginning", letters=hot[vocab])
        self.word = self.circuit.channel("in the word", letters=1.0 - hot[vocab])
        tokens = self.circuit.channels("token", vocab, letters=hot[:, :vocab])
        self.known: dict[Sequence_, OneHot] = {Source("tokens"): OneHot(tuple(range(vocab)), tuple(tokens), 0)}

    def value(self, node: Sequence_) -> OneHot:
        if node not in self.known:
            self.known[node] = self._value(node)
        return self.known[node]

    def _value(self, node: Sequence_) -> OneHot:
        if isinstance(node, Source):
            table = np.eye(self.length + 1)[:, 1:]
            channels = self.circuit.channels("index", self.length, positions=table)
            return OneHot(tuple(range(self.length)), tuple(channels), 0)
        if isinstance(node, Number):
            return OneHot((node.value,), (self.word,), 0)
        if isinstance(node, Map):
            return self._where(node) if node.operator == "where" else self._map(node)
        return self._width(node) if isinstance(node, Width) else self._aggregate(node)

    # ------------------------------------------------------------------ position by position

    def _map(self, node: Map) -> OneHot:
        """One unit per combination of arguments: (Σ hot − (n − 1))₊ is 1 there and 0 elsewhere."""
        parts = [self.value(part) for part in node.parts]
        grids = np.meshgrid(*(np.arange(len(part.values)) for part in parts), indexing="ij")
        index = np.stack([grid.ravel() for grid in grids])
        if index.shape[1] > MOST_PAIRS:
            raise BadInput(f"{node.operator} would need a table of {index.shape[1]} entries: take a shorter length")
        arguments = [np.array(part.values)[row] for part, row in zip(parts, index)]
        results = apply(node.operator, arguments).astype(int)
        units = [[part.channels[i] for part, i in zip(parts, column)] for column in index.T]
        return self._feed(units, results, max(part.ready for part in parts), node.operator)

    def _where(self, node: Map) -> OneHot:
        condition, yes, no = (self.value(part) for part in node.parts)
        sides = [
            ([c for value, c in zip(condition.values, condition.channels) if (value != 0) == wanted], branch)
            for wanted, branch in ((True, yes), (False, no))
        ]
        units = [[*chosen, channel] for chosen, branch in sides for channel in branch.channels if chosen]
        results = [value for chosen, branch in sides for value in branch.values if chosen]
        return self._feed(units, results, max(part.ready for part in (condition, yes, no)), "where", together=2)

    def _feed(
        self,
        units: Sequence[Sequence[int]],
        results: Sequence[int] | np.ndarray,
        ready: int,
        name: str,
        together: int = 0,
    ) -> OneHot:
        """A unit for each list of channels, written to the channel of its result.

        together   how many of a unit's channels are hot at once; all of them unless given
        """
        values = sorted(set(map(int, results)))
        channels = self.circuit.channels(f"{name} {self.circuit.width}", len(values))
        read = sorted({channel for unit in units for channel in unit})
        column = {channel: place for place, channel in enumerate(read)}
        first, last = np.zeros((len(units), len(read))), np.zeros((len(values), len(units)))
        for row, (unit, result) in enumerate(zip(units, results)):
            np.add.at(first[row], [column[channel] for channel in unit], 1.0)
            last[values.index(int(result)), row] = 1.0
        bias = np.array([1.0 - (together or len(unit)) for unit in units])
        layer = ready // 2
        self.circuit.layer(layer).feed(Network([first, last], [bias]), read, channels, add=True)
        return OneHot(tuple(values), tuple(channels), 2 * layer + 2)

    # ------------------------------------------------------------------ attention

    def _aggregate(self, node: Aggregate) -> OneHot:
        if node.reduction == "mean":
            raise BadInput("a mean has no finite set of values: compile programs with max, min and widths")
        value = self.value(node.value)
        values = tuple(sorted({*value.values, 0}))
        count, layer = len(node.selector.conditions), self._layer(node.selector, value.ready)
        sharpness = 50.0 * len(values) / EXTRA
        query, key, used = self._scores(node.selector, sharpness)
        # Beyond the conditions: the order of the values, and the mark between those that are selected and the others.
        order = [values.index(each) / len(values) for each in value.values]
        rank = [EXTRA * (place if node.reduction == "max" else 1 - place) for place in order]
        query.append((self.one, used, sharpness))
        key += [(channel, used, extra) for channel, extra in zip(value.channels, rank)]
        key.append((self.begin, used, count - 0.5))
        raw = self.circuit.channels(f"{node.reduction} {self.circuit.width}", len(values))
        read = [(channel, values.index(each), 1.0) for each, channel in zip(value.values, value.channels)]
        read.append((self.begin, values.index(0), 1.0))
        output = [(channel, place, 1.0) for place, channel in enumerate(raw)]
        self.circuit.layer(layer).heads.append(Head(query, key, read, output, add=True))
        return OneHot(values, tuple(self._cleaned(raw, layer)), 2 * layer + 2)

    def _width(self, node: Width) -> OneHot:
        """The mark has the score of a selected key, so that its weight is 1/(1 + width)."""
        count, layer = len(node.selector.conditions), self._layer(node.selector, 0)
        query, key, used = self._scores(node.selector, 50.0)
        query.append((self.one, used, 50.0))
        key.append((self.begin, used, float(count)))
        left = self.circuit.channel(f"share of the mark {self.circuit.width}")
        self.circuit.layer(layer).heads.append(
            Head(query, key, [(self.begin, 0, 1.0)], [(left, 0, 1.0)], add=True)
        )  # fmt: skip
        widths = np.arange(self.length + 1)
        channels = self.circuit.channels(f"width {self.circuit.width}", len(widths))
        block = self.circuit.layer(layer)
        block.feed(interpolate(1 / (1 + widths), np.eye(len(widths))), [left], channels, add=True)
        block.feed(Network([[[1.0]], [[-1.0]]]), [self.begin], [channels[0]], add=True)  # nothing at the mark itself
        return OneHot(tuple(widths.tolist()), tuple(channels), 2 * layer + 2)

    def _layer(self, selector: Select, ready: int) -> int:
        parts = [self.value(part).ready for key, query, _ in selector.conditions for part in (key, query)]
        return (max(ready, *parts) + 1) // 2

    def _scores(
        self, selector: Select, sharpness: float
    ) -> tuple[list[tuple[int, int, float]], list[tuple[int, int, float]], int]:
        """Entries of query and key whose score is sharpness · number of conditions that hold; dimensions used."""
        query: list[tuple[int, int, float]] = []
        key: list[tuple[int, int, float]] = []
        used = 0
        for left, right, operator in selector.conditions:
            holds: Callable[[np.ndarray, np.ndarray], np.ndarray] = OPERATORS[operator]
            keys, queries = self.value(left), self.value(right)
            table = holds(np.array(keys.values)[:, None], np.array(queries.values)[None, :])
            query += [(channel, used + y, sharpness) for y, channel in enumerate(queries.channels)]
            key += [(keys.channels[x], used + y, 1.0) for x, y in np.argwhere(table).tolist()]
            used += len(queries.values)
        return query, key, used

    def _cleaned(self, raw: Sequence[int], layer: int) -> list[int]:
        """Exactly 0 or 1, and 0 at the mark: (2x − 1/2 − 4b)₊ − (2x − 3/2 − 4b)₊."""
        clean = self.circuit.channels(f"picked {self.circuit.width}", len(raw))
        size = len(raw)
        first = np.concatenate([np.tile(2 * np.eye(size), (2, 1)), np.full((2 * size, 1), -4.0)], 1)
        last = np.concatenate([np.eye(size), -np.eye(size)], 1)
        bias = np.repeat([-0.5, -1.5], size)
        self.circuit.layer(layer).feed(Network([first, last], [bias]), [*raw, self.begin], clean, add=True)
        return clean
