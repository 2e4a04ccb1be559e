"""The atoms of constant depth: counting modulo n (by a table, or by sines) and remembering the last write."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.gadgets import Network, interpolate
from sandlab.circuits.targets import to_theory
from sandlab.errors import BadInput, integer
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.registry import register
from sandlab.worlds.automata.machine import Automaton

__all__ = ["counter_circuit", "memory_circuit", "sine_counter_circuit", "truncated_counter"]


def uniform_sum(circuit: CircuitBuilder, channel: int) -> Head:
    """A head that puts (1/2T) Σ_{i≤t} into the channel: the anchor takes the weight that is missing (Lemma 15)."""
    anchor, share = circuit.counting_channels()
    return Head.copying([channel], [channel], query=[(share, 0, 1.0)], key=[(anchor, 0, 1.0)])


def add_counter(circuit: CircuitBuilder, depth: int, channel: int, size: int, start: int = 0) -> None:
    """One layer that replaces the letters 0…n−1 in a channel by their running sum modulo n."""
    layer = circuit.layer(depth)
    layer.heads.append(uniform_sum(circuit, channel))
    counts = np.arange((size - 1) * circuit.length + 1)
    layer.feed(interpolate(counts / (2 * circuit.length), (counts + start) % size), [channel], [channel])


def counter_steps(machine: Automaton) -> list[int]:
    """Letters as steps of a counter: δ(q, σ) = q + step mod n; anything else is refused."""
    states = np.arange(machine.states)
    steps = machine.table[0].tolist()
    if not all(
        (machine.table[:, letter] == (states + step) % machine.states).all() for letter, step in enumerate(steps)
    ):
        raise BadInput(
            "the modular counter needs letters that add a number modulo the number of states: "
            "try method 'auto' or 'krohn-rhodes'"
        )
    return steps


@register("circuits")
def counter_circuit(machine: Automaton, length: int) -> TheoryTransformer:
    """Counting modulo n in one layer: a uniform average, then a table of sums.

    Attention gives every position the weight 1/(2T) and the anchor the rest (γ_t = log(2T − t) is its score), so that
    s_t = (1/2T) Σ_{i≤t} σ_i; a table of the (n−1)T + 1 sums gives (2T·s + q_0) mod n. Width 4((n−1)T + 1), largest
    weight at most 4nT + 2. Liu et al. 2023, Lemma 15; corrected: the factor 2T, and q_0.
    """
    integer("length", length, 1)
    circuit = CircuitBuilder(machine.alphabet, length, anchors=1)
    value = circuit.channel("count", letters=counter_steps(machine))
    add_counter(circuit, 0, value, machine.states, machine.start)
    circuit.relabel(value, list(range(machine.states)), machine.labels.tolist())
    note = f"modular counter: one uniform head, a table of {(machine.states - 1) * length + 1} sums"
    return to_theory(circuit.read_number(value, machine.outputs), note)


def truncated_counter(machine: Automaton, length: int, sums: Sequence[int]) -> TheoryTransformer:
    """The counter whose table knows only some sums, as if the others had never been seen; those give state 0.

    It fails by design as trained counters fail when the distribution of letters shifts.
    """
    circuit = CircuitBuilder(machine.alphabet, length, anchors=1)
    value = circuit.channel("count", letters=counter_steps(machine))
    layer = circuit.layer(0)
    layer.heads.append(uniform_sum(circuit, value))
    known = np.asarray(sorted(sums))
    grid = np.arange((machine.states - 1) * length + 1)
    values = np.where(np.isin(grid, known), (grid + machine.start) % machine.states, 0)
    layer.feed(interpolate(grid / (2 * length), values), [value], [value])
    return to_theory(
        circuit.read_number(value, machine.outputs), f"counter that knows {len(known)} of {len(grid)} sums"
    )


@register("circuits")
def sine_counter_circuit(machine: Automaton, length: int) -> TheoryTransformer:
    """Counting modulo n with two sine units: the width no longer grows with T.

    The sum m = 2T·s becomes (cos 2πm/n, sin 2πm/n), and n points of the circle are separated by linear logits
    2⟨p_y, ·⟩: no table of sums.
    """
    integer("length", length, 1)
    size = machine.states
    if (machine.labels != np.arange(size)).any():
        raise BadInput("the sine counter reads out states: leave out the observation, or take the modular counter")
    circuit = CircuitBuilder(machine.alphabet, length, anchors=1)
    value = circuit.channel("count", letters=counter_steps(machine))
    other = circuit.channel("circle sine")
    layer = circuit.layer(0)
    layer.heads.append(uniform_sum(circuit, value))
    turn = 2 * math.pi / size
    units = Network(
        (np.full((2, 1), turn * 2 * length), np.eye(2)),
        (np.array([math.pi / 2, 0.0]) + turn * machine.start, np.zeros(2)),
        ("sine",),
    )
    layer.feed(units, [value], [value, other])
    angle = turn * np.arange(size)
    circuit.read_out([value, other], np.column_stack([np.cos(angle), np.sin(angle)]))
    return to_theory(circuit, "sine counter: one uniform head, two sine units")


@register("circuits")
def memory_circuit(machine: Automaton, length: int) -> TheoryTransformer:
    """The last write in one layer: the head prefers late positions, and writes over holds.

    The score of position j is c(j/T − 2·1[σ_j holds]) with c = T log(16nT); what it reads is within 1/8 of the last
    value written (q_0 when there is none), and a table rounds it. Width 4n, largest weight 2T log(nT) for nT ≥ 16.
    Liu et al. 2023, Lemma 16; corrected: the factor 2, and the range of n and T.
    """
    integer("length", length, 1)
    writes = written_values(machine)
    states = machine.states
    circuit = CircuitBuilder(machine.alphabet, length, anchors=0)
    held = np.array([write is None for write in writes], dtype=float)
    value = circuit.channel("value", letters=[machine.start + 1 if w is None else w + 1 for w in writes])
    hold = circuit.channel("hold", letters=held)
    late = circuit.channel("late", positions=np.arange(1, length + 1) / length)
    one = circuit.channel("one", letters=np.ones(machine.alphabet))
    scale = length * math.log(16 * states * length)
    layer = circuit.layer(0)
    query, key = [(one, range(2), np.array([[-2.0, 1.0]]))], [((hold, late), range(2), scale)]
    layer.heads.append(Head.copying([value], [value], query=query, key=key))
    levels = np.arange(1, states + 1)
    layer.feed(interpolate(levels, machine.labels), [value], [value])
    note = f"memory: one head reads the last write among {length} positions"
    return to_theory(circuit.read_number(value, machine.outputs), note)


def written_values(machine: Automaton) -> list[int | None]:
    """What each letter writes, None when it holds; other letters are refused."""
    values: list[int | None] = []
    for letter, row in enumerate(machine.maps):
        if (row == np.arange(machine.states)).all() and machine.states > 1:
            values.append(None)
        elif (row == row[0]).all():
            values.append(int(row[0]))
        else:
            raise BadInput(
                f"a memory's letters hold or write, but letter {machine.letters[letter]!r} does neither: "
                "try method 'auto' or 'krohn-rhodes'"
            )
    return values
