"""Drawing up a transformer: named channels, heads and networks that read and write them, then one set of weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from sandlab.circuits.gadgets import Network, chain, interpolate
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.models.base import seeded

__all__ = ["Draft", "Head", "LayerDraft"]

Entries = Sequence[tuple[int, int, float]]


@dataclass(frozen=True)
class Head:
    """One attention head. Entries are (channel, dimension inside the head, weight).

    query, key   scores are Σ_dimensions query·key
    value        what is read at the attended position, into which dimension
    output       where each dimension is written; these channels are overwritten unless `add`
    """

    query: Entries
    key: Entries
    value: Entries
    output: Entries
    add: bool = False

    @property
    def width(self) -> int:
        return 1 + max(
            (dimension for part in (self.query, self.key, self.value) for _, dimension, _ in part), default=0
        )


@dataclass
class LayerDraft:
    """The heads of a layer, and its networks with the channels they read and write."""

    heads: list[Head] = field(default_factory=list)
    pieces: list[tuple[Network, list[int], list[int]]] = field(default_factory=list)
    overwritten: set[int] = field(default_factory=set)

    def feed(self, network: Network, read: Sequence[int], write: Sequence[int], *, add: bool = False) -> None:
        """Add a network; what it writes replaces the channels, or is added to them. Networks on one channel add up."""
        self.pieces.append((network, list(read), list(write)))
        if not add:
            self.overwritten.update(write)


class Draft:
    """A transformer in the making.

    Channels are coordinates of the stream with a name; each has a value per letter, per position and per anchor.
    """

    def __init__(self, vocab: int, length: int, anchors: int) -> None:
        self.vocab, self.length, self.anchors = vocab, length, anchors
        self.names: list[str] = []
        self.letter_values: list[np.ndarray] = []
        self.position_values: list[np.ndarray] = []
        self.anchor_values: list[np.ndarray] = []
        self.layers: list[LayerDraft] = []
        self.turn = 0.0

    def channel(
        self,
        name: str,
        *,
        letters: Sequence[float] | np.ndarray | None = None,
        positions: Sequence[float] | np.ndarray | None = None,
        anchors: Sequence[float] | np.ndarray | float = 0.0,
    ) -> int:
        """A new coordinate of the stream: what letters and positions put there (nothing unless given)."""
        self.names.append(name)
        self.letter_values.append(_row(letters, self.vocab))
        self.position_values.append(_row(positions, self.length))
        self.anchor_values.append(np.broadcast_to(np.asarray(anchors, dtype=np.float64), (self.anchors,)).copy())
        return len(self.names) - 1

    def find(self, name: str) -> int | None:
        """The channel of that name, if there is one."""
        return self.names.index(name) if name in self.names else None

    def layer(self, place: int) -> LayerDraft:
        """Layer `place` (from 0); layers up to it are made as needed."""
        while len(self.layers) <= place:
            self.layers.append(LayerDraft())
        return self.layers[place]

    @property
    def depth(self) -> int:
        return len(self.layers)

    # ------------------------------------------------------------------ positions

    def counting_channels(self) -> tuple[int, int]:
        """ "anchor" marks position 0; "share" holds γ_t = log(2T − t), so that uniform sums can be taken (Lemma 15)."""
        anchor, share = self.find("anchor"), self.find("share")
        if anchor is None or share is None:
            steps = np.arange(1, self.length + 1)
            anchor = self.channel("anchor", anchors=1.0)
            share = self.channel("share", positions=np.log(2 * self.length - steps))
        return anchor, share

    def circle_channels(self, turn: float | None = None) -> tuple[int, int]:
        """Positions on a circle, (cos, sin) of t·turn; by default all tokens share half a circle."""
        cosine, sine = self.find("cosine"), self.find("sine")
        if cosine is None or sine is None:
            self.turn = math.pi / self.tokens if turn is None else turn
            angle = self.turn * np.arange(1 - self.anchors, self.length + 1)
            cut = self.anchors
            cosine = self.channel("cosine", positions=np.cos(angle[cut:]), anchors=np.cos(angle[:cut]))
            sine = self.channel("sine", positions=np.sin(angle[cut:]), anchors=np.sin(angle[:cut]))
        return cosine, sine

    @property
    def tokens(self) -> int:
        return self.anchors + self.length

    def look_back(self, steps: int, sharpness: float, read: Sequence[int], write: Sequence[int]) -> Head:
        """A head that copies channels from `steps` positions before: score γ·cos of the angle between t − s and t′.

        Keys are turned forward by the angle of `steps`, so that the key of t − s meets the query of t. Turned
        backward, as printed, the head would look ahead.
        """
        cosine, sine = self.circle_channels()
        root, angle = math.sqrt(sharpness), self.turn * steps
        turn = [(cosine, 0, math.cos(angle)), (cosine, 1, math.sin(angle))]
        turn += [(sine, 0, -math.sin(angle)), (sine, 1, math.cos(angle))]
        return Head(
            query=[(cosine, 0, root), (sine, 1, root)],
            key=[(channel, dimension, root * weight) for channel, dimension, weight in turn],
            value=[(channel, place, 1.0) for place, channel in enumerate(read)],
            output=[(channel, place, 1.0) for place, channel in enumerate(write)],
        )

    # ------------------------------------------------------------------ finishing

    def relabel(self, channel: int, values: Sequence[int], labels: Sequence[int]) -> None:
        """Let the last layer write labels[i] where it wrote values[i] (nothing to do when they are equal)."""
        if list(values) == list(labels):
            return
        last = self.layers[-1]
        for place, (network, read, write) in enumerate(last.pieces):
            if channel in write:
                only = network.rows([write.index(channel)])
                last.pieces[place] = (chain(only, interpolate(values, np.array(labels))), read, [channel])
                return
        raise AssertionError(f"the last layer does not write {self.names[channel]}")

    def build(self, channel: int, outputs: int, note: str) -> TheoryTransformer:
        """Weights for the whole draft; class y is read off a channel that holds v by the logit 2yv − y²."""
        width = len(self.names)
        blocks = [assemble(layer, width) for layer in self.layers]
        with seeded(0):
            model = TheoryTransformer(
                vocab=self.vocab,
                length=self.length,
                outputs=outputs,
                width=width,
                heads=tuple(len(layer.heads) for layer in self.layers),
                head_width=tuple(max((head.width for head in layer.heads), default=1) for layer in self.layers),
                hidden=tuple(block.widths if block else () for block in blocks),
                activation=tuple(block.activations if block else () for block in blocks),
                prefix=self.anchors,
                channels=tuple(self.names),
                note=note,
            )
        with torch.no_grad():
            self._fill(model, blocks)
            classes = np.arange(outputs, dtype=np.float64)
            readout = np.zeros((outputs, width))
            readout[:, channel] = 2 * classes
            model.readout.weight.copy_(torch.as_tensor(readout))
            assert model.readout.bias is not None
            model.readout.bias.copy_(torch.as_tensor(-(classes**2)))
        return model

    def _fill(self, model: TheoryTransformer, blocks: Sequence[Network | None]) -> None:
        model.embedding.copy_(torch.as_tensor(np.stack(self.letter_values, 1)))
        model.position.copy_(torch.as_tensor(np.stack(self.position_values, 1)))
        model.anchors.copy_(torch.as_tensor(np.stack(self.anchor_values, 1)))
        layers: list[Any] = list(model.layers)
        for draft, block, layer in zip(self.layers, blocks, layers):
            attention = layer.attention
            written: set[int] = set()
            for name in ("query", "key", "value", "output"):
                weights = getattr(attention, name)
                weights.zero_()
                for place, head in enumerate(draft.heads):
                    for channel, dimension, weight in getattr(head, name):
                        row = (dimension, channel) if name == "output" else (channel, dimension)
                        weights[(place, *row)] = weight
            for head in draft.heads:
                if not head.add:
                    written.update(channel for channel, _, _ in head.output)
            attention.keep[list(written)] = 0
            if block is None:
                continue
            for linear, weight, bias in zip(layer.mlp.maps, block.weights, block.biases):
                linear.weight.copy_(torch.as_tensor(weight))
                linear.bias.copy_(torch.as_tensor(bias))
            layer.mlp.keep[list(draft.overwritten)] = 0


def _row(values: Sequence[float] | np.ndarray | None, size: int) -> Float[np.ndarray, "entry"]:
    return np.zeros(size) if values is None else np.asarray(values, dtype=np.float64).copy()


def assemble(layer: LayerDraft, width: int) -> Network | None:
    """The networks of a layer side by side, on the full width of the stream; shallow ones wait for deep ones."""
    if not layer.pieces:
        return None
    deepest = max(len(network.activations) for network, _, _ in layer.pieces)
    pieces = [(deepen(network, deepest), read, write) for network, read, write in layer.pieces]
    kinds = pieces[0][0].activations
    assert all(network.activations == kinds for network, _, _ in pieces), "networks of a layer need equal activations"
    weights, biases = [], []
    for place in range(deepest + 1):
        parts = [network.weights[place] for network, _, _ in pieces]
        bias = [network.biases[place] for network, _, _ in pieces]
        if place == 0:
            weights.append(np.concatenate([_columns(part, read, width) for part, (_, read, _) in zip(parts, pieces)]))
            biases.append(np.concatenate(bias))
        elif place == deepest:
            weights.append(np.concatenate([_columns(p.T, w, width).T for p, (_, _, w) in zip(parts, pieces)], 1))
            total = np.zeros(width)
            for part, (_, _, write) in zip(bias, pieces):
                np.add.at(total, write, part)
            biases.append(total)
        else:
            weights.append(_diagonal(parts))
            biases.append(np.concatenate(bias))
    return Network(tuple(weights), tuple(biases), kinds)


def deepen(network: Network, depth: int) -> Network:
    """The same function with more hidden layers: x = (x)₊ − (−x)₊ carries the outputs on."""
    while len(network.activations) < depth:
        size = network.outputs
        both = np.concatenate([np.eye(size), -np.eye(size)])
        carry = Network((both, both.T.copy()), (np.zeros(2 * size), np.zeros(size)), ("relu",))
        network = chain(network, carry)
    return network


def _columns(weight: np.ndarray, read: Sequence[int], width: int) -> np.ndarray:
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
