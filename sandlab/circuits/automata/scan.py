"""Any automaton in ⌈log₂ T⌉ layers: maps of states are composed over windows that double (Theorem 10)."""

from __future__ import annotations

import math

from sandlab.circuits.automata.drafting import Draft
from sandlab.circuits.automata.gadgets import compose_functions
from sandlab.errors import choice, integer
from sandlab.models.theory import TheoryTransformer
from sandlab.registry import register
from sandlab.worlds.automata.machine import Automaton

__all__ = ["scan_circuit"]


@register("circuits", "scan")
def scan_circuit(machine: Automaton, length: int, *, padding: str = "identity") -> TheoryTransformer:
    """A transformer of ⌈log₂ T⌉ layers that simulates any automaton on words of up to T letters.

    Every position carries a map of the states: n numbers δ(·, σ_t). Layer l copies the map of position t − 2^{l−1}
    into the left channels (attention on circular positions, scores 100 T²(log n + log T)·cos) and composes it with the
    own map on the right by `compose_functions`. After the last layer position t holds the map of all letters up to
    t; its value at the start state is read out.

    Before the word stand T padding tokens that carry the identity, so one circuit serves every start state but for
    the readout. `padding="constant"` gives them the constant map to the start state instead, as in the source.

    Size: d = 2n + 2, 2 heads of width max(n, 2), widths 4n² + n and n², largest weight
    max{4n + 2, 10 T √(log n + log T)}. Liu et al. 2023, Theorem 10; corrected: the sign of the rotation, the value
    channel, and that coordinate q_0 must be read.
    """
    integer("length", length, 1)
    choice("padding", padding, ("identity", "constant"))
    states, window = machine.states, 1 << max(1, math.ceil(math.log2(max(length, 2))))
    draft = Draft(machine.alphabet, length, anchors=window)
    left = [draft.channel(f"earlier map of {state}") for state in range(states)]
    right = []
    for state in range(states):
        filler = state if padding == "identity" else machine.start
        right.append(draft.channel(f"map of {state}", letters=machine.table[state] + 1.0, anchors=filler + 1.0))
    draft.circle_channels(math.pi / window)
    sharpness = 100 * window**2 * (math.log(states) + math.log(window))
    for place in range(int(math.log2(window))):
        layer = draft.layer(place)
        layer.heads = [
            draft.look_back(2**place, sharpness, right, left),
            draft.look_back(0, sharpness, right, right),
        ]
        layer.feed(compose_functions(states), left + right, right)
        layer.overwritten.update(left)
    # States are numbered from 1 inside the circuit.
    draft.relabel(right[machine.start], [q + 1 for q in range(states)], machine.labels.tolist())
    note = f"scan: ⌈log₂ {length}⌉ = {draft.depth} layers compose maps of {states} states over windows that double"
    return draft.build(right[machine.start], machine.outputs, note)
