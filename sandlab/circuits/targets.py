"""Circuits as the weights of a model: one function for each kind of model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.gadgets import Network
from sandlab.errors import require
from sandlab.models.attention import Attention
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.models.base import Model, seeded
from sandlab.models.dyck.codes import BalanceTransformer
from sandlab.models.layers import LayerNorm, Linear, RMSNorm
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.models.transformer import Transformer

__all__ = ["Frame", "SimplifiedOptions", "to_balance", "to_simplified", "to_theory", "to_transformer"]

NEVER = -1e4  # a relative bias that no score outweighs


@dataclass(frozen=True)
class Frame:
    """Coordinates of the stream: channel i is written along row i of `write` and read along row i of `read`.

    write · readᵀ is the identity, so the circuit computes the same in every frame.
    """

    write: Float[np.ndarray, "channel width"]
    read: Float[np.ndarray, "channel width"]

    @classmethod
    def plain(cls, channels: int) -> Frame:
        """Every channel is a coordinate."""
        return cls(np.eye(channels), np.eye(channels))

    @classmethod
    def mirrored(cls, channels: int) -> Frame:
        """Every channel is a coordinate, and its negative another: the mean of the stream is 0."""
        eye, zero = np.eye(channels), np.zeros((channels, channels))
        return cls(np.concatenate([eye, -eye], 1), np.concatenate([eye, zero], 1))

    @classmethod
    def of(cls, rows: Float[np.ndarray, "channel width"]) -> Frame:
        """Every channel is a row of an invertible matrix."""
        return cls(rows, np.linalg.inv(rows).T)

    @property
    def width(self) -> int:
        return self.write.shape[1]


def to_theory(circuit: CircuitBuilder, note: str) -> TheoryTransformer:
    """A theory transformer; `note` says how its weights came about."""
    networks = [layer.network(circuit.width) for layer in circuit.layers]
    readout = circuit.readout()
    with seeded(0):
        model = TheoryTransformer(
            vocab=circuit.vocab, length=circuit.length, prefix=circuit.anchors,
            outputs=len(readout), width=circuit.width,
            heads=tuple(len(layer.heads) for layer in circuit.layers),
            head_width=tuple(max((head.width for head in layer.heads), default=1) for layer in circuit.layers),
            hidden=tuple(network.widths if network else () for network in networks),
            activation=tuple(network.activations if network else () for network in networks),
            channels=tuple(circuit.names), note=note,
        )  # fmt: skip
    with torch.no_grad():
        for parameter, table in zip((model.embedding, model.position, model.anchors), circuit.tables()):
            _copy(parameter, table)
        for layer, plan, network in zip(model.layers, circuit.layers, networks):
            attention = layer.attention
            for i, head in enumerate(plan.heads):
                query, key, value, output = head.matrices(circuit.width, attention.query.shape[-1])
                parts = (attention.query, attention.key, attention.value, attention.output)
                for part, matrix in zip(parts, (query, key, value, output.T)):
                    _copy(part[i], matrix)
                attention.keep[[] if head.add else list(head.written)] = 0
            if network is not None:
                _write_network(layer.mlp.maps, network)
                layer.mlp.keep[list(plan.overwritten)] = 0
        _write_network(
            [model.readout], Network([readout], [] if circuit.readout_bias is None else [circuit.readout_bias])
        )
    return model


def to_transformer(
    circuit: CircuitBuilder,
    *,
    frame: Frame | None = None,
    norm: str = "none",
    residual: bool | tuple[bool, ...] = True,
    tied: bool = False,
    log_output: float | None = None,
    read: str = "all",
) -> Transformer:
    """A transformer (float64), with the options `norm` to `read` of its config.

    Where a layer has a residual connection, its heads and networks can only add to channels. Positions are a table of
    vectors, or relative when a head has `lags`. A tied model reads out what the letters embed.
    """
    frame = frame or Frame.plain(circuit.width)
    letters, positions, _ = circuit.tables()
    networks = [layer.network(circuit.width) for layer in circuit.layers]
    hidden = max((network.widths[0] for network in networks if network), default=0)
    heads = [head for layer in circuit.layers for head in layer.heads]
    relative = any(head.lags for head in heads)
    with seeded(0):
        model = Transformer(
            vocab=circuit.vocab, length=circuit.length, layers=circuit.depth, width=frame.width,
            heads=tuple(max(1, len(layer.heads)) for layer in circuit.layers),
            head_width=max((head.width for head in heads), default=1),
            mlp="relu" if hidden else "none", mlp_width=hidden or None, bias=hidden > 0, norm=norm,
            positions="relative" if relative else "learned" if positions.any() else "none",
            scale=1.0, residual=residual, output_map=False, tied=tied, log_output=log_output, read=read,
            outputs=circuit.vocab if tied else len(circuit.readout()), readout_bias=circuit.readout_bias is not None,
        )  # fmt: skip
    for plan, kept in zip(circuit.layers, model.config.residual_per_layer):
        adds = all(head.add for head in plan.heads) and not plan.overwritten
        assert adds or not kept, "a layer with a residual connection can only add to channels"
    assert circuit.anchors == 0, "a transformer has no anchors"
    _clear(model)
    with torch.no_grad():
        _copy(model.embedding.weight, letters @ frame.write)
        if model.config.positions == "learned":
            _copy(model.position.weight, positions @ frame.write)
        for layer, plan, network in zip(model.layers, circuit.layers, networks):
            for i, head in enumerate(plan.heads):
                _write_head(layer.attention, i, head, frame)
            if network is not None:
                (up, down), (inner, last) = network.weights, network.biases
                moved = Network([up @ frame.read, frame.write.T @ down], [inner, last @ frame.write])
                _write_network([layer.mlp.up_proj, layer.mlp.down_proj], moved)
        if not tied:
            _copy(model.unembed.weight, circuit.readout() @ frame.read)
        if circuit.readout_bias is not None:
            _copy(model.readout_bias, circuit.readout_bias)
    return model


class SimplifiedOptions(TypedDict, total=False):
    """Options of the simplified transformer that a circuit leaves free (see `SimplifiedTransformerConfig`)."""

    value: bool
    merged: bool
    query_skip: bool
    mask_self: bool
    floor: float
    read: str


def to_simplified(
    circuit: CircuitBuilder, *, heads: int | None = None, **options: Unpack[SimplifiedOptions]
) -> SimplifiedTransformer:
    """A simplified transformer (float64): the first layer's heads attend by position, the one of the second matches.

    The token's channels come first, and every head of the first layer copies all of them. An anchor is the reserved
    token before the sequence. The floor is 1e-300 unless given: it keeps log p, and its gradient, finite at p = 0.
    """
    first, second = circuit.layer(0), circuit.layer(1)
    heads = max(len(first.heads), 1) if heads is None else heads
    boundary = "bos" if circuit.anchors else "clamp"
    options.setdefault("floor", 1e-300)
    with seeded(0):
        model = SimplifiedTransformer(
            vocab=circuit.vocab, length=circuit.length, heads=heads, boundary=boundary, **options
        )
    _clear(model)
    config = model.config
    require(len(first.heads) <= config.heads, "heads", config.heads, f"at least {len(first.heads)}, one per lag")
    _, positions, anchors = circuit.tables()
    tokens = np.concatenate([anchors, positions])
    stream = np.zeros((config.stream_width, circuit.width))  # which coordinates hold which channels
    stream[: config.token_width] = np.eye(config.token_width, circuit.width)
    with torch.no_grad():
        for i, head in enumerate(first.heads):
            query, key, value, output = head.matrices(circuit.width)
            _copy(model.positional.weight[i], tokens @ query @ (tokens @ key).T)
            if model.positional.value is not None:
                _copy(model.positional.value[i], np.eye(config.token_width))
            block = slice((i + 1) * config.token_width, (i + 2) * config.token_width)
            stream[block] = stream[: config.token_width] @ value @ output.T
        for head in second.heads:
            query, key, _, _ = head.matrices(circuit.width, config.head_width)
            query, key = stream @ query, stream @ key
            if isinstance(model.matching.key, Linear):
                _copy(model.matching.query.weight, query.T)
                _copy(model.matching.key.weight, key.T)
            else:  # merged: the score is (A r[query]) · r[key]
                _copy(model.matching.query.weight, key @ query.T)
    return model


def to_balance(
    circuits: Sequence[CircuitBuilder],
    *,
    types: int,
    depth: int,
    coding: str = "type-depth",
    floor: float = 1e-9,
    frame: Frame | None = None,
) -> BalanceTransformer:
    """The transformer of the balance theorems (float64): one circuit of one head and one network for each layer.

    Each network writes the whole stream of the next layer, the last one the probabilities. The frame is that of the
    first layer.
    """
    pieces = [circuit.layer(0).pieces[0] for circuit in circuits]
    with seeded(0):
        model = BalanceTransformer(
            types=types, depth=depth, coding=coding, floor=floor,
            hidden=tuple(network.widths for network, _, _ in pieces),
            widths=(*(circuit.width for circuit in circuits), pieces[-1][0].outputs),
        ).double()  # fmt: skip
    frames = [frame or Frame.plain(circuits[0].width), *(Frame.plain(circuit.width) for circuit in circuits[1:])]
    with torch.no_grad():
        _copy(model.embedding, circuits[0].tables()[0] @ frames[0].write)
        for layer, circuit, (network, channels, _), at in zip(model.layers, circuits, pieces, frames):
            query, key, value, output = circuit.layer(0).heads[0].matrices(circuit.width)
            _copy(layer.score, at.read.T @ key @ query.T @ at.read)
            _copy(layer.value, at.write.T @ output @ value.T @ at.read)
            first = network.weights[0] @ at.read[channels]
            _write_network(layer.maps, Network([first, *network.weights[1:]], network.biases))
    return model


def _write_head(attention: Attention, index: int, head: Head, frame: Frame) -> None:
    width, inner = frame.width, attention.head_width
    query, key, value, output = head.matrices(len(frame.read), inner)
    rows = slice(index * inner, (index + 1) * inner)
    _copy(attention.query.weight[rows], query.T @ frame.read)
    _copy(attention.key.weight[rows], key.T @ frame.read)
    _copy(attention.value.weight[index * width : (index + 1) * width], frame.write.T @ output @ value.T @ frame.read)
    if head.lags is not None:
        attention.distance_bias[index] = NEVER
        for lag, bias in head.lags.items():
            attention.distance_bias[index, attention.length - 1 + lag] = bias


def _write_network(maps: Iterable[Linear], network: Network) -> None:
    for linear, weight, bias in zip(maps, network.weights, network.biases):
        assert linear.bias is not None
        _copy(linear.weight[: weight.shape[0], : weight.shape[1]], weight)  # units beyond those of the circuit stay 0
        _copy(linear.bias[: len(bias)], bias)


def _clear(model: Model) -> None:
    """Make the model float64 and every weight 0 but the gains of norms."""
    with torch.no_grad():
        for parameter in model.double().parameters():
            parameter.zero_()
        for module in model.modules():
            if isinstance(module, (LayerNorm, RMSNorm)):
                module.weight.fill_(1.0)


def _copy(parameter: Tensor, values: np.ndarray) -> None:
    parameter.copy_(torch.as_tensor(values))
