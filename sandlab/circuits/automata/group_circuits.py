"""Circuits for automata whose letters are permutations: running products in the group, read as states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sandlab.circuits.automata.programs import (
    AbelianProgram,
    DirectProgram,
    GroupProgram,
    SemidirectProgram,
    direct_program,
    group_program,
    semidirect_program,
    series_program,
    wreath_program,
)
from sandlab.circuits.builder import CircuitBuilder, CircuitLayer
from sandlab.circuits.gadgets import Network, chain, tabulate
from sandlab.circuits.targets import to_theory
from sandlab.errors import BadInput, integer
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.registry import register
from sandlab.worlds.automata.algebra.groups import FiniteGroup, group_name
from sandlab.worlds.automata.machine import Automaton
from sandlab.worlds.automata.products import canonical

__all__ = [
    "direct_product_circuit",
    "group_circuit",
    "letter_group",
    "semidirect_circuit",
    "series_circuit",
    "wreath_circuit",
]


def letter_group(machine: Automaton) -> FiniteGroup:
    """The group of permutations that the letters generate; other letters are refused."""
    for letter, row in enumerate(machine.maps):
        if len(set(row.tolist())) < machine.states:
            raise BadInput(
                f"letter {machine.letters[letter]!r} is not a permutation of the states: "
                "a group circuit needs a group automaton, try method 'krohn-rhodes'"
            )
    return FiniteGroup.generated(machine.maps)


def program_circuit(machine: Automaton, length: int, program: GroupProgram, note: str) -> TheoryTransformer:
    """Letters in as codes, the program, and the code of the product read as the state π(q_0)."""
    integer("length", length, 1)
    group = program.group
    assert group.permutations is not None
    code_of = {tuple(row): code for row, code in zip(group.permutations.tolist(), program.codes)}
    letters = np.array([code_of[tuple(row)] for row in machine.maps.tolist()])
    circuit = CircuitBuilder(machine.alphabet, length, anchors=1)
    channels = [circuit.channel(f"code {i}", letters=letters[:, i]) for i in range(letters.shape[1])]
    program.emit(circuit, 0, channels)
    labels = machine.labels[group.permutations[:, machine.start]]
    state = circuit.channel("state")
    _append_decoder(circuit, channels, state, tabulate(program.codes, labels))
    return to_theory(circuit.read_number(state, machine.outputs), note)


def _append_decoder(circuit: CircuitBuilder, channels: Sequence[int], state: int, decoder: Network) -> None:
    """Let the last layer's networks write the state instead of the code: no layer is added."""
    last, code = circuit.layers[-1], CircuitLayer()
    index = {channel: i for i, channel in enumerate(channels)}
    for network, read, write in last.pieces:
        code.feed(network, [index[c] for c in read], [index[c] for c in write])
    written = {channel for _, _, write in last.pieces for channel in write}
    for channel in (channel for channel in channels if channel not in written):
        # Codes are not negative, so one rectifier carries them.
        code.feed(Network([[[1.0]], [[1.0]]]), [index[channel]], [index[channel]])
    whole = code.network(len(channels))
    assert whole is not None
    last.pieces = [(chain(whole, decoder), list(channels), [state])]
    last.overwritten = {state}


@register("circuits")
def direct_product_circuit(machine: Automaton, length: int) -> TheoryTransformer:
    """A group G_1 × G_2: both run side by side. An abelian group is a product of counters, in one layer.

    Widths, heads and channels add up, depth is that of the deepest factor. A group that is no such product is refused.
    Liu et al. 2023, Lemma 17.
    """
    program = direct_program(letter_group(machine))
    if isinstance(program, AbelianProgram):
        sizes = "×".join(f"C{size}" for size in program.sizes)
        return program_circuit(machine, length, program, f"direct product: {sizes}, one counter each, side by side")
    names = " × ".join(group_name(factor.group) for factor in program.factors)
    return program_circuit(machine, length, program, f"direct product: {names}, side by side, depth {program.depth}")


@register("circuits")
def semidirect_circuit(machine: Automaton, length: int) -> TheoryTransformer:
    """A group N ⋊ H: H first, its action undone on N, then N, then the action redone; depth L_N + L_H + 2.

    D_8 = C_4 ⋊ C_2 takes 4 layers where the composition series takes 7. A group that does not split (Q_8) is refused.
    Liu et al. 2023, Lemma 18; corrected: the third stage runs N, not H.
    """
    program = semidirect_program(letter_group(machine))
    names = f"{group_name(program.normal.group)} ⋊ {group_name(program.acting.group)}"
    return program_circuit(machine, length, program, f"semidirect product: {names}, depth {program.depth}")


@register("circuits")
def wreath_circuit(base: FiniteGroup, acting: int | FiniteGroup, length: int) -> TheoryTransformer:
    """The wreath product N ≀ H acting on itself (`canonical` of `FiniteGroup.wreath`); depth L_N + L_H + 2.

    acting   H, or its order where it is cyclic

    N runs in |H| copies whose order H permutes. For a cyclic H a counter gives the shift, and the two shifts are
    wirings chosen by the count. Liu et al. 2023, Lemma 19; corrected: the bound needs a one-channel code of H, not of
    the product.
    """
    program = wreath_program(base, acting)
    machine = canonical(program.group.products)
    name = f"C{acting}" if isinstance(acting, int) else group_name(acting)
    note = f"wreath product: {group_name(base)} ≀ {name}, depth {program.depth}"
    return program_circuit(machine, length, program, note)


@register("circuits")
def series_circuit(machine: Automaton, length: int) -> TheoryTransformer:
    """Any solvable group by its composition series: each step one counter and a wreath product; depth 3ℓ − 2.

    With factors K_1, …, K_ℓ every step embeds the larger group into (smaller group) ≀ K. Depth at most 3 log₂|G|,
    channels and heads at most 2|G|, widths at most 20nT|G|. Liu et al. 2023, Theorem 16; corrected: the number of
    steps is bounded by log₂|G|, not log₂ T.
    """
    program = series_program(letter_group(machine))
    note = f"composition series of {group_name(program.group)}: depth {program.depth}"
    return program_circuit(machine, length, program, note)


@register("circuits")
def group_circuit(machine: Automaton, length: int) -> TheoryTransformer:
    """A solvable group automaton by the shallowest group program: direct, semidirect or series."""
    program = group_program(letter_group(machine))
    kind = {
        AbelianProgram: "counters side by side",
        DirectProgram: "a direct product",
        SemidirectProgram: "a semidirect product",
    }
    how = kind.get(type(program), "its composition series")
    return program_circuit(machine, length, program, f"{group_name(program.group)} by {how}: depth {program.depth}")
