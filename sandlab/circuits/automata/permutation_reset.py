"""Letters that permute or reset: the running product since the last reset (Lemma 20)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sandlab.circuits.automata.programs import GroupProgram, group_program
from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.gadgets import interpolate, tabulate
from sandlab.circuits.targets import to_theory
from sandlab.errors import BadInput, integer
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.registry import register
from sandlab.worlds.automata.algebra.groups import FiniteGroup, group_name
from sandlab.worlds.automata.machine import Automaton

__all__ = ["permutation_reset_circuit"]


def last_reset(circuit: CircuitBuilder, reset: int, largest: float, read: Sequence[int], write: Sequence[int]) -> Head:
    """A head that copies channels from the last position whose `reset` flag is 1; the anchor always has it.

    Score c(j/T + 2·reset_j), c = N log(16mN): late positions win among resets, and resets over others. With values
    up to m what is read is within 1/8 of the copied value.
    """
    late, one = circuit.find("late"), circuit.find("one")
    if late is None or one is None:
        steps = np.arange(1 - circuit.anchors, circuit.length + 1)
        late = circuit.channel(
            "late", positions=steps[circuit.anchors :] / circuit.tokens, anchors=steps[: circuit.anchors]
        )
        one = circuit.channel("one", positions=np.ones(circuit.length), anchors=1.0)
    scale = circuit.tokens * math.log(16 * max(largest, 1.0) * circuit.tokens)
    query, key = [(one, range(2), np.array([[2.0, 1.0]]))], [((reset, late), range(2), scale)]
    return Head.copying(read, write, query=query, key=key)


@register("circuits")
def permutation_reset_circuit(machine: Automaton, length: int) -> TheoryTransformer:
    """An automaton whose letters are bijections or constants; depth L_G + 2 (1 when it only remembers).

    With r(t) the last reset up to t, q_t = Φ(g_≤t · g_≤r⁻¹)(q_r). L_G layers run the group (resets count as the
    identity); one head reads the value and the group code at the last reset, and a table turns them into
    x = Φ(g_≤r⁻¹)(q_r); the last layer's table gives Φ(g_≤t)(x). "No reset yet" must find the anchor, which counts as a
    reset to q_0 with the identity's code. Liu et al. 2023, Lemma 20; corrected: the anchor, and d_in = 2·repDim + 1.
    """
    integer("length", length, 1)
    resets, permutations = split_letters(machine)
    group = FiniteGroup.generated([*permutations.values(), tuple(range(machine.states))])
    program = group_program(group) if len(group) > 1 else None
    circuit = CircuitBuilder(machine.alphabet, length, anchors=1)
    flag = circuit.channel(
        "reset", letters=[float(letter in resets) for letter in range(machine.alphabet)], anchors=1.0
    )
    written = [resets.get(letter, 0) for letter in range(machine.alphabet)]
    value = circuit.channel("value", letters=written, anchors=machine.start)
    state = value if program is None else circuit.channel("state")
    if program is None:
        layer = circuit.layer(0)
        layer.heads.append(last_reset(circuit, flag, machine.states, [value], [value]))
        layer.feed(interpolate(np.arange(machine.states), machine.labels), [value], [value])
    else:
        _with_group(circuit, machine, program, permutations, flag, value, state)
    note = f"permutation-reset: {group_name(group)} since the last reset, depth {circuit.depth}"
    return to_theory(circuit.read_number(state, machine.outputs), note)


def split_letters(machine: Automaton) -> tuple[dict[int, int], dict[int, tuple[int, ...]]]:
    """Constant letters with their value, bijective ones with their permutation; other letters are refused."""
    resets, permutations = {}, {}
    for letter, row in enumerate(machine.maps.tolist()):
        if len(set(row)) == machine.states:
            permutations[letter] = tuple(row)
        elif len(set(row)) == 1:
            resets[letter] = row[0]
        else:
            raise BadInput(
                f"letter {machine.letters[letter]!r} neither permutes nor resets the states: try method 'krohn-rhodes'"
            )
    return resets, permutations


def _with_group(
    circuit: CircuitBuilder,
    machine: Automaton,
    program: GroupProgram,
    permutations: dict[int, tuple[int, ...]],
    flag: int,
    value: int,
    state: int,
) -> None:
    group = program.group
    assert group.permutations is not None
    code_of = {tuple(row): code for row, code in zip(group.permutations.tolist(), program.codes)}
    identity = tuple(range(machine.states))
    letters = np.array([code_of[permutations.get(letter, identity)] for letter in range(machine.alphabet)])
    size = letters.shape[1]
    running = [circuit.channel(f"code {i}", letters=letters[:, i]) for i in range(size)]
    copied = [circuit.channel(f"code {i} at reset") for i in range(size)]
    program.emit(circuit, 0, running)
    layer = circuit.layer(program.depth)
    largest = max(machine.states, float(program.codes.max()))
    layer.heads.append(last_reset(circuit, flag, largest, [value, *running], [value, *copied]))
    g, q = np.divmod(np.arange(len(group) * machine.states), machine.states)
    points = np.column_stack([program.codes[g], q])
    undone = group.permutations[group.inverses[g], q]
    layer.feed(tabulate(points, undone), [*copied, value], [value])
    redone = machine.labels[group.permutations[g, q]]
    circuit.layer(program.depth + 1).feed(tabulate(points, redone), [*running, value], [state])
