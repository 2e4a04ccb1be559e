"""Building circuits: named channels of the stream, heads and networks that read and write them.

The functions of `sandlab.circuits.targets` turn a circuit into the weights of a model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from sandlab.circuits.gadgets import Network, chain, interpolate, linear_as_relu

__all__ = ["CircuitBuilder", "CircuitLayer", "Head"]

Channels = Sequence[int] | Int[np.ndarray, "channel"]
Matrix = Float[np.ndarray, "channel dimension"]
Entry = tuple[int | Channels, int | Channels, float | Matrix]
Entries = Sequence[Entry]


@dataclass(frozen=True)
class Head:
    """One attention head, its maps given by entries (channel, dimension inside the head, weight).

    An entry may have lists of channels and dimensions, paired one to one or joined by a matrix of weights.

    query, key   scores are Σ_dimensions query · key
    value        what is read at the attended position, into which dimension
    output       the channel to which each dimension is written; it is overwritten unless `add`
    lags         instead of scores: a bias for each distance to look back; all other distances are ruled out
    """

    query: Entries = ()
    key: Entries = ()
    value: Entries = ()
    output: Entries = ()
    add: bool = False
    lags: Mapping[int, float] | None = None

    @classmethod
    def copying(
        cls, read: Channels, write: Channels, *, query: Entries = (), key: Entries = (), add: bool = False,
        lags: Mapping[int, float] | None = None, factor: float = 1.0,
    ) -> Head:  # fmt: skip
        """A head that copies channels, times a factor, to other channels."""
        dimensions = range(len(read))
        return cls(query, key, [(read, dimensions, factor)], [(write, dimensions, 1.0)], add, lags)

    @property
    def width(self) -> int:
        parts = (self.query, self.key, self.value)
        return 1 + max((int(np.max(dimension, initial=0)) for part in parts for _, dimension, _ in part), default=0)

    @property
    def written(self) -> set[int]:
        return {int(channel) for channels, _, _ in self.output for channel in np.atleast_1d(channels)}

    def matrices(self, channels: int, width: int | None = None) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Query, key, value and output as matrices (channel, dimension)."""
        shape = (channels, width or self.width)
        query, key, value, output = (_matrix(part, shape) for part in (self.query, self.key, self.value, self.output))
        return query, key, value, output


def _matrix(entries: Entries, shape: tuple[int, int]) -> Matrix:
    matrix = np.zeros(shape)
    for channels, dimensions, weight in entries:
        rows, columns = np.atleast_1d(channels), np.atleast_1d(dimensions)
        np.add.at(matrix, np.ix_(rows, columns) if np.ndim(weight) == 2 else (rows, columns), weight)
    return matrix


@dataclass
class CircuitLayer:
    """The heads of a layer, and its networks with the channels they read and write."""

    heads: list[Head] = field(default_factory=list)
    pieces: list[tuple[Network, list[int], list[int]]] = field(default_factory=list)
    overwritten: set[int] = field(default_factory=set)

    def feed(self, network: Network, read: Channels, write: Channels, *, add: bool = False) -> None:
        """Add a network; its output replaces the channels, or is added to them. Networks on one channel add up."""
        self.pieces.append((network, list(read), list(write)))
        if not add:
            self.overwritten.update(write)

    def network(self, width: int) -> Network | None:
        """The networks side by side, on all channels of the stream; shallow ones are made as deep as the deepest."""
        if not self.pieces:
            return None
        depth = max(len(network.activations) for network, _, _ in self.pieces)
        networks = [_deepen(network, depth) for network, _, _ in self.pieces]
        kinds = networks[0].activations
        assert all(network.activations == kinds for network in networks), "networks of a layer need equal activations"
        reads = [_spread(n.weights[0], read, width) for n, (_, read, _) in zip(networks, self.pieces)]
        writes = [_spread(n.weights[-1].T, write, width).T for n, (_, _, write) in zip(networks, self.pieces)]
        inner = [_diagonal([n.weights[i] for n in networks]) for i in range(1, depth)]
        biases = [np.concatenate([n.biases[i] for n in networks]) for i in range(depth)]
        last = sum(_spread(n.biases[-1][None], write, width)[0] for n, (_, _, write) in zip(networks, self.pieces))
        return Network([np.concatenate(reads), *inner, np.concatenate(writes, 1)], [*biases, last], kinds)


class CircuitBuilder:
    """A circuit in the making.

    Channels are named coordinates of the stream; each has a value for every letter, every position and every anchor
    (a token before the word).
    """

    def __init__(self, vocab: int, length: int, anchors: int = 0) -> None:
        self.vocab, self.length, self.anchors = vocab, length, anchors
        self.names: list[str] = []
        self.letter_values: list[Float[np.ndarray, "letter"]] = []
        self.position_values: list[Float[np.ndarray, "position"]] = []
        self.anchor_values: list[Float[np.ndarray, "anchor"]] = []
        self.layers: list[CircuitLayer] = []
        self.turn = 0.0
        self._readout: list[tuple[Channels, Float[np.ndarray, "class channel"]]] = []
        self.readout_bias: Float[np.ndarray, "class"] | None = None

    @property
    def width(self) -> int:
        return len(self.names)

    @property
    def depth(self) -> int:
        return len(self.layers)

    @property
    def tokens(self) -> int:
        """Anchors and positions of the word."""
        return self.anchors + self.length

    # ------------------------------------------------------------------ channels

    def channel(
        self, name: str, *, letters: ArrayLike = 0.0, positions: ArrayLike = 0.0, anchors: ArrayLike = 0.0
    ) -> int:
        """A new coordinate of the stream: what letters, positions and anchors put there (nothing unless given)."""
        self.names.append(name)
        sizes = (self.vocab, self.length, self.anchors)
        tables = (self.letter_values, self.position_values, self.anchor_values)
        for table, values, size in zip(tables, (letters, positions, anchors), sizes):
            table.append(np.broadcast_to(np.asarray(values, dtype=np.float64), (size,)).copy())
        return self.width - 1

    def channels(
        self, name: str, size: int, *, letters: ArrayLike = 0.0, positions: ArrayLike = 0.0, anchors: ArrayLike = 0.0
    ) -> list[int]:
        """A block of channels, whose values are the columns of the tables."""
        rows = ((letters, self.vocab), (positions, self.length), (anchors, self.anchors))
        by_letter, by_position, by_anchor = (np.broadcast_to(table, (count, size)).T for table, count in rows)
        return [
            self.channel(f"{name} {i}", letters=by_letter[i], positions=by_position[i], anchors=by_anchor[i])
            for i in range(size)
        ]

    def find(self, name: str) -> int | None:
        """The channel of that name, if there is one."""
        return self.names.index(name) if name in self.names else None

    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The values of all channels (columns) for the letters, the positions and the anchors (rows)."""
        return np.stack(self.letter_values, 1), np.stack(self.position_values, 1), np.stack(self.anchor_values, 1)

    def counting_channels(self) -> tuple[int, int]:
        """ "anchor" marks position 0; "share" holds γ_t = log(2T − t), so that uniform sums can be taken (Lemma 15)."""
        anchor, share = self.find("anchor"), self.find("share")
        if anchor is None or share is None:
            steps = np.arange(1, self.length + 1)
            anchor = self.channel("anchor", anchors=1.0)
            share = self.channel("share", positions=np.log(2 * self.length - steps))
        return anchor, share

    def circle_channels(self, turn: float | None = None) -> tuple[int, int]:
        """Positions on a circle, (cos, sin) of t · turn; by default all tokens share half a circle."""
        cosine, sine = self.find("cosine"), self.find("sine")
        if cosine is None or sine is None:
            self.turn = math.pi / self.tokens if turn is None else turn
            before, inside = np.split(self.turn * np.arange(1 - self.anchors, self.length + 1), [self.anchors])
            cosine = self.channel("cosine", positions=np.cos(inside), anchors=np.cos(before))
            sine = self.channel("sine", positions=np.sin(inside), anchors=np.sin(before))
        return cosine, sine

    def position_channels(self) -> list[int]:
        """One channel for each token, anchors first: positions as unit vectors."""
        first = self.find("position 0")
        if first is not None:
            return list(range(first, first + self.tokens))
        before, inside = np.split(np.eye(self.tokens), [self.anchors])
        return self.channels("position", self.tokens, positions=inside, anchors=before)

    # ------------------------------------------------------------------ layers

    def layer(self, index: int) -> CircuitLayer:
        """Layer `index` (from 0); layers up to it are created as needed."""
        while len(self.layers) <= index:
            self.layers.append(CircuitLayer())
        return self.layers[index]

    def look_back(self, steps: int, sharpness: float, read: Channels, write: Channels, *, add: bool = False) -> Head:
        """A head that copies channels from `steps` positions before: score γ · cos of the angle between t − s and t′.

        Keys are turned forward by the angle of `steps`, so that the key of t − s meets the query of t. Turned
        backward, as printed, the head would look ahead.
        """
        circle = self.circle_channels()
        root, angle = math.sqrt(sharpness), self.turn * steps
        turned = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
        query, key = [(circle, range(2), root)], [(circle, range(2), root * turned)]
        return Head.copying(read, write, query=query, key=key, add=add)

    def attend_to(
        self, keys: Sequence[int], sharpness: float, read: Channels, write: Channels, *, add: bool = False
    ) -> Head:
        """A head with which token i copies channels from token keys[i]: score γ there and 0 elsewhere."""
        positions = np.array(self.position_channels())
        dimensions = range(self.tokens)
        query, key = [(positions, dimensions, sharpness)], [(positions[list(keys)], dimensions, 1.0)]
        return Head.copying(read, write, query=query, key=key, add=add)

    # ------------------------------------------------------------------ readout

    def read_out(self, channels: Channels, weight: ArrayLike, bias: ArrayLike | None = None) -> CircuitBuilder:
        """Let the logits be weight · channels + bias, one row of weights per class; several readouts add up."""
        self._readout.append((channels, np.asarray(weight, dtype=np.float64).reshape(-1, len(channels))))
        self.readout_bias = self.readout_bias if bias is None else np.asarray(bias, dtype=np.float64)
        return self

    def read_number(self, channel: int, outputs: int) -> CircuitBuilder:
        """Let class y be read off a channel that holds v, by the logit 2yv − y²."""
        classes = np.arange(outputs)
        return self.read_out([channel], 2 * classes, -(classes**2))

    def readout(self) -> Float[np.ndarray, "class channel"]:
        return np.sum([_spread(weight, channels, self.width) for channels, weight in self._readout], axis=0)

    def relabel(self, channel: int, values: Sequence[int], labels: Sequence[int]) -> None:
        """Let the last layer write labels[i] where it wrote values[i] (nothing to do when they are equal)."""
        if list(values) == list(labels):
            return
        last = self.layers[-1]
        for index, (network, read, write) in enumerate(last.pieces):
            if channel in write:
                only = network.rows([write.index(channel)])
                last.pieces[index] = (chain(only, interpolate(values, labels)), read, [channel])
                return
        raise AssertionError(f"the last layer does not write {self.names[channel]}")


def _deepen(network: Network, depth: int) -> Network:
    """The same function with more hidden layers: x = (x)₊ − (−x)₊ carries the outputs on."""
    while len(network.activations) < depth:
        network = chain(network, linear_as_relu(np.eye(network.outputs)))
    return network


def _spread(weight: Float[np.ndarray, "row input"], read: Channels, width: int) -> Float[np.ndarray, "row channel"]:
    """Weights of some channels as weights of all channels."""
    spread = np.zeros((len(weight), width))
    for column, channel in enumerate(read):
        spread[:, channel] += weight[:, column]
    return spread


def _diagonal(parts: Sequence[np.ndarray]) -> np.ndarray:
    result = np.zeros((sum(len(part) for part in parts), sum(part.shape[1] for part in parts)))
    row = column = 0
    for part in parts:
        result[row : row + len(part), column : column + part.shape[1]] = part
        row, column = row + len(part), column + part.shape[1]
    return result
