"""The circuits without a shortcut: one layer, or one step, per letter."""

from __future__ import annotations

import math

import numpy as np
import torch

from sandlab.circuits.builder import CircuitBuilder
from sandlab.circuits.gadgets import tabulate
from sandlab.circuits.targets import to_theory
from sandlab.errors import integer
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.models.base import seeded
from sandlab.models.recurrent import RNN, RNNLayer
from sandlab.registry import register
from sandlab.worlds.automata.machine import Automaton

__all__ = ["rnn_circuit", "sequential_circuit"]


@register("circuits")
def sequential_circuit(machine: Automaton, length: int) -> TheoryTransformer:
    """T layers for T letters: in each layer every position takes the state of the one before it and moves once.

    After ℓ layers positions up to ℓ are right. The anchor carries q_0. The shortcuts do better than this.
    """
    integer("length", length, 1)
    circuit = CircuitBuilder(machine.alphabet, length, anchors=1)
    # 0 means "not yet known", so that positions which have not been reached are harmless.
    state = circuit.channel("state", anchors=machine.start + 1.0)
    letter = circuit.channel("letter", letters=np.arange(machine.alphabet), anchors=float(machine.alphabet))
    circuit.circle_channels()
    sharpness = 100 * circuit.tokens**2 * (math.log(machine.states + 1) + math.log(circuit.tokens))
    rows = [(q + 1, s, machine.transitions[q][s] + 1) for q in range(machine.states) for s in range(machine.alphabet)]
    rows.append((machine.start + 1, machine.alphabet, machine.start + 1))
    table = np.array(rows)
    for depth in range(length):
        layer = circuit.layer(depth)
        layer.heads.append(circuit.look_back(1, sharpness, [state], [state]))
        layer.feed(tabulate(table[:, :2], table[:, 2]), [state, letter], [state])
    circuit.relabel(state, [q + 1 for q in range(machine.states)], machine.labels.tolist())
    return to_theory(circuit.read_number(state, machine.outputs), f"sequential: {length} layers, one letter each")


@register("circuits")
def rnn_circuit(machine: Automaton, length: int | None = None) -> RNN:
    """A recurrent network that steps through any word: z_{(q,σ)} = (h_q + u_σ − 1)₊ and h′ = D z.

    D_{q′,(q,σ)} = 1[δ(q,σ) = q′]; written as one recurrence on z with |Q||Σ| units. A unit that turns on after the
    first step says "no longer at the start", since the hidden state begins at zero. Words may have any length; `length`
    is not used.
    """
    pairs = machine.states * machine.alphabet
    with seeded(0):
        model = RNN(
            vocab=machine.alphabet, width=pairs + 1, outputs=machine.outputs, embedding="one-hot", activation="relu"
        ).double()
    q, letter = np.divmod(np.arange(pairs), machine.alphabet)
    follows = machine.table[q, letter]
    recurrent = np.zeros((pairs + 1, pairs + 1))
    recurrent[:pairs, :pairs] = q[:, None] == follows[None]
    recurrent[:pairs, pairs] = -1.0 * (q == machine.start)
    drive = np.zeros((pairs + 1, machine.alphabet))
    drive[np.arange(pairs), letter] = 1
    bias = np.concatenate([(q == machine.start) - 1.0, [1.0]])
    readout = np.zeros((machine.outputs, pairs + 1))
    readout[machine.labels[follows], np.arange(pairs)] = 1
    with torch.no_grad():
        layer = model.layers[0]
        assert isinstance(layer, RNNLayer) and layer.drive.bias is not None
        layer.weight.copy_(torch.as_tensor(recurrent))
        layer.drive.weight.copy_(torch.as_tensor(drive))
        layer.drive.bias.copy_(torch.as_tensor(bias))
        model.unembed.weight.copy_(torch.as_tensor(readout))
    return model
