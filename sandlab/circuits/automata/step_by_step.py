"""The circuits without a shortcut: one layer, or one step, per letter."""

from __future__ import annotations

import math

import numpy as np
import torch

from sandlab.circuits.builder import Draft
from sandlab.circuits.gadgets import tabulate
from sandlab.errors import integer
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.models.recurrent import RNN
from sandlab.registry import register
from sandlab.worlds.automata.machine import Automaton

__all__ = ["rnn_circuit", "sequential_circuit"]


@register("circuits")
def sequential_circuit(machine: Automaton, length: int) -> TheoryTransformer:
    """T layers for T letters: in each layer every position takes the state of the one before it and moves once.

    After ℓ layers positions up to ℓ are right. The anchor carries q_0. It is what the shortcuts save.
    """
    integer("length", length, 1)
    draft = Draft(machine.alphabet, length, anchors=1)
    # 0 stands for "nothing yet", so that states of positions whose turn has not come are harmless.
    state = draft.channel("state", anchors=machine.start + 1.0)
    letter = draft.channel("letter", letters=np.arange(machine.alphabet), anchors=float(machine.alphabet))
    draft.circle_channels()
    sharpness = 100 * draft.tokens**2 * (math.log(machine.states + 1) + math.log(draft.tokens))
    rows = [(q + 1, s, machine.transitions[q][s] + 1) for q in range(machine.states) for s in range(machine.alphabet)]
    rows.append((machine.start + 1, machine.alphabet, machine.start + 1))
    table = np.array(rows)
    for place in range(length):
        layer = draft.layer(place)
        layer.heads.append(draft.look_back(1, sharpness, [state], [state]))
        layer.feed(tabulate(table[:, :2], table[:, 2]), [state, letter], [state])
    draft.relabel(state, [q + 1 for q in range(machine.states)], machine.labels.tolist())
    return draft.build(state, machine.outputs, f"sequential: {length} layers, one letter each")


@register("circuits")
def rnn_circuit(machine: Automaton, length: int | None = None) -> RNN:
    """A recurrent network that steps through any word: z_{(q,σ)} = (h_q + u_σ − 1)₊ and h′ = D z.

    D_{q′,(q,σ)} = 1[δ(q,σ) = q′]; written as one recurrence on z with |Q||Σ| units. A unit that turns on after the
    first step stands for "no longer at the start", since the hidden state begins at zero. Words may be of any length.
    """
    pairs = machine.states * machine.alphabet
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
        layer.weight.copy_(torch.as_tensor(recurrent))  # type: ignore[operator,union-attr]
        layer.drive.weight.copy_(torch.as_tensor(drive))  # type: ignore[operator,union-attr]
        layer.drive.bias.copy_(torch.as_tensor(bias))  # type: ignore[operator,union-attr]
        model.unembed.weight.copy_(torch.as_tensor(readout))
    return model
