"""Depth decides connectivity: repeated squaring of the adjacency matrix, one layer each."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.gadgets import Network
from sandlab.circuits.targets import to_transformer
from sandlab.errors import integer
from sandlab.models.transformer import Transformer
from sandlab.registry import register

__all__ = ["repeated_squaring", "squaring_inputs"]


@register("circuits")
def repeated_squaring(
    vertices: int, edges: int, squarings: int | None = None, *, sharpness: float | None = None
) -> Transformer:
    """An encoder that decides s–t connectivity by squaring a Boolean matrix ⌈log₂ n⌉ times, one layer each (float64).

    A register token per vertex holds its row of the reachability matrix R. The first layer gathers the edges; in a
    squaring layer register i attends equally to all k with R_ik = 1 and averages their rows, and ReLUs turn the average
    into min(1, n·average) = ∨_k R_ik R_kj; the last layer reads R_st. With k squarings exactly the pairs at distance
    at most 2^k are found. Inputs: `squaring_inputs`.

    sharpness   γ, the score of a match. What softmax leaves to the other tokens, e^{−γ/2} of each, is multiplied by
                2·edges + n in every layer; None takes γ so large that it stays below 10⁻⁴

    Source: Merrill and Sabharwal 2024, "A little depth goes a long way".
    """
    integer("vertices", vertices, low=2, high=256)
    integer("edges", edges, low=1, high=100_000)
    rounds = (vertices - 1).bit_length() if squarings is None else integer("squarings", squarings, low=0)
    gain = math.log(2 * edges + vertices)
    sharpness = max(60.0, 2 * ((rounds + 2) * gain + 10)) if sharpness is None else sharpness
    circuit, size = CircuitBuilder(2 * vertices**2 + vertices, edges + vertices + 1), vertices
    letters = _letters(size)
    start, end, own, source, target = (circuit.channels(name, size, letters=table) for name, table in letters.items())
    row = circuit.channels("row", size, letters=letters["register"])
    one, seen, yes = circuit.channel("one", letters=1.0), circuit.channels("seen", size), circuit.channel("yes")
    _gather(circuit, own, start, end, row, sharpness)
    for depth in range(1, rounds + 1):
        circuit.layer(depth).heads = [_head(row, own, row, row, sharpness)]
    for depth in range(rounds + 1):
        for channel in row:
            circuit.layer(depth).feed(_saturate(2 * edges + size), [channel], [channel], add=True)
    last = circuit.layer(rounds + 1)
    last.heads = [_head(source, own, row, seen, sharpness)]
    meet = Network([np.eye(size).repeat(2, 1), np.ones((1, size))], [-np.ones(size)])
    last.feed(meet, [c for pair in zip(seen, target) for c in pair], [yes], add=True)
    circuit.read_out([one, yes], [[25.0, -50.0], [-25.0, 50.0]])
    return _encoder(to_transformer(circuit))


def squaring_inputs(
    ends: Int[Tensor, "n edge 2"], source: Int[Tensor, "n"], target: Int[Tensor, "n"], vertices: int
) -> Int[Tensor, "n token"]:
    """Edge letters u·n + v, one register per vertex, then the question letter of (s, t)."""
    edges = ends[..., 0] * vertices + ends[..., 1]
    registers = (vertices**2 + torch.arange(vertices, device=ends.device)).expand(len(ends), -1)
    question = vertices**2 + vertices + source * vertices + target
    return torch.cat([edges, registers, question.unsqueeze(1)], 1)


def _letters(size: int) -> dict[str, np.ndarray]:
    """What each letter puts into the channels: an edge its ends, a register its vertex, a question s and t."""
    eye, total = np.eye(size), 2 * size**2 + size
    first, second = np.repeat(eye, size, 0), np.tile(eye, (size, 1))
    places = {"from": (first, 0), "to": (second, 0), "register": (eye, size**2)}
    places |= {"source": (first, size**2 + size), "target": (second, size**2 + size)}
    tables = {}
    for name, (rows, begin) in places.items():
        tables[name] = np.zeros((total, size))
        tables[name][begin : begin + len(rows)] = rows
    return tables


def _head(query: list[int], key: list[int], read: list[int], write: list[int], sharpness: float) -> Head:
    """Tokens attend equally to the keys that match; score γ for a match, 0 else."""
    size = range(len(query))
    return Head.copying(read, write, query=[(query, size, sharpness)], key=[(key, size, 1.0)], add=True)


def _gather(
    circuit: CircuitBuilder, own: list[int], start: list[int], end: list[int], row: list[int], sharpness: float
) -> None:
    """Registers collect the other ends of their edges; one without any attends to itself, whose value is nothing."""
    size = range(len(own))
    for near, far in ((start, end), (end, start)):
        key = [(near, size, 1.0), (own, size, 0.5)]
        head = Head.copying(far, row, query=[(own, size, sharpness)], key=key, add=True)
        circuit.layer(0).heads.append(head)


def _saturate(factor: float) -> Network:
    """x ↦ min(1, factor · x) − x for x ≥ 0, to be added to x."""
    return Network([[[factor], [factor], [1.0]], [[1.0, -1.0, -1.0]]], [[0.0, -1.0, 0.0]])


def _encoder(model: Transformer) -> Transformer:
    """The same weights in a model whose tokens see all others."""
    options = {field.name: getattr(model.config, field.name) for field in dataclasses.fields(model.config)}
    encoder = Transformer(**{**options, "causal": False}).double()
    encoder.load_state_dict(model.state_dict())
    return encoder
