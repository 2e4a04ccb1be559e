"""Chain of thought evaluates circuits: one clause per gate, two layers."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from sandlab.errors import number
from sandlab.models.base import seeded
from sandlab.models.reasoning.lego import ClauseAttention, LegoTransformer
from sandlab.registry import register
from sandlab.worlds.reasoning.boolean_circuits import GATES, CircuitEvaluation

__all__ = ["gate_by_gate"]


@register("circuits")
def gate_by_gate(world: CircuitEvaluation, *, sharpness: float = 60.0) -> LegoTransformer:
    """Two layers that write a circuit's values down gate by gate, one clause each: M gates in M steps (float64).

    Layer 1: the clause of node t − 1 attends to gate t and copies its type and its two wires. Layer 2: two heads fetch
    the values of these wires from the clauses that wrote them; a ReLU for each (type, bit, bit) looks the result up.
    Read-out: the next node, and the result. Scores are γ = `sharpness` apart, so the error is of order e^{−γ}.

    Source: Feng et al. 2023; Merrill and Sabharwal 2024 (attention gathers inputs, the MLP computes the gate).
    """
    number("sharpness", sharpness, low=1.0)
    size = world.vocab + world.vocab % 2  # an even token width, so that two heads share the clause
    with seeded(0):
        model = LegoTransformer(
            vocab=world.vocab, token_width=size, heads=2, head_width=size + 1, hidden=4 * len(GATES), layers=2,
            residual=True,
        ).double()  # fmt: skip
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.embedding.weight[:, : world.vocab] = torch.eye(world.vocab)
        _fetch_gate(model.layers[0].attention, world, size, sharpness)
        _fetch_bits(model.layers[1].attention, world, size, sharpness)
        _look_up_gate(model, world, size)
        _read_out(model, world, size)
    return model


def _slot(number: int, size: int) -> int:
    """First coordinate of a slot's block in a clause vector."""
    return (number - 1) * size


def _fetch_gate(attention: ClauseAttention, world: CircuitEvaluation, size: int, sharpness: float) -> None:
    """Head 1: the gate whose node follows the written one; its type goes to slot 2, its wires to slots 3 and 1."""
    nodes, root = torch.arange(world.nodes - 1), math.sqrt(size + 1)
    attention.query.weight[nodes + 1, _slot(4, size) + nodes] = sharpness * root
    attention.key.weight[nodes + 1, _slot(1, size) + nodes + 1] = 1.0
    moved = [(2, 2, world.nodes, len(GATES)), (3, 3, 0, world.nodes), (4, 1, 0, world.nodes)]
    row = 0
    for source, target, first, count in moved:
        each = torch.arange(count)
        attention.value.weight[row + each, _slot(source, size) + first + each] = 1.0
        attention.output.weight[_slot(target, size) + first + each, row + each] = 1.0
        row += count


def _fetch_bits(attention: ClauseAttention, world: CircuitEvaluation, size: int, sharpness: float) -> None:
    """Heads 1 and 2: the clause that wrote the node of a wire; its bit goes to the bit coordinates of slots 2 and 3.

    A gate's own second wire stands in slot 4 too, so a written bit counts as much as a match: only clauses that have
    both reach the full score.
    """
    nodes, bits = torch.arange(world.nodes), torch.arange(2)
    root, half = math.sqrt(size + 1), attention.value.weight.shape[0] // 2
    written = _slot(5, size) + world.first_value + bits
    for head, (wire, target) in enumerate(((3, 2), (1, 3))):
        start = head * (size + 1)
        attention.query.weight[start + nodes, _slot(wire, size) + nodes] = sharpness * root
        attention.key.weight[start + nodes, _slot(4, size) + nodes] = 1.0
        attention.query.weight[start + size, written] = sharpness * root
        attention.key.weight[start + size, written] = 1.0
        attention.value.weight[head * half + bits, written] = 1.0
        attention.output.weight[_slot(target, size) + world.first_value + bits, head * half + bits] = 1.0


def _look_up_gate(model: LegoTransformer, world: CircuitEvaluation, size: int) -> None:
    """A unit for each (type, a, b), on when all three are there; it adds the gate's value to slot 1."""
    block = model.layers[1]
    assert block.up_proj.bias is not None
    for unit, (kind, first, second) in enumerate((k, a, b) for k in range(len(GATES)) for a in (0, 1) for b in (0, 1)):
        result = list(GATES.values())[kind][2 * first + second]
        coordinates = (
            _slot(2, size) + world.nodes + kind,
            _slot(2, size) + world.first_value + first,
            _slot(3, size) + world.first_value + second,
        )
        block.up_proj.weight[unit, list(coordinates)] = 1.0
        block.up_proj.bias[unit] = -2.0
        block.down_proj.weight[_slot(1, size) + world.first_value + result, unit] = 1.0


def _read_out(model: LegoTransformer, world: CircuitEvaluation, size: int) -> None:
    """Slot 4: the node after the written one. Slot 5: the bit in slot 1."""
    weight: Tensor = model.readout.weight
    nodes, bits = torch.arange(world.nodes - 1), world.first_value + torch.arange(2)
    weight[nodes + 1, _slot(4, size) + nodes] = 50.0
    weight[world.vocab + bits, _slot(1, size) + bits] = 50.0
