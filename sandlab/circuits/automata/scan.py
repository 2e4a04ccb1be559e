"""Any automaton in ⌈log₂ T⌉ layers: maps of states are composed over windows that double (Theorem 10)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Int

from sandlab.circuits.builder import CircuitBuilder
from sandlab.circuits.gadgets import chain, compose_functions, tabulate
from sandlab.circuits.targets import to_theory
from sandlab.errors import BadInput, choice, integer
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.registry import register
from sandlab.worlds.automata.algebra.groups import FiniteGroup
from sandlab.worlds.automata.algebra.semigroups import enumerate_semigroup
from sandlab.worlds.automata.algebra.series import core_free_subgroup
from sandlab.worlds.automata.machine import Automaton

__all__ = ["scan_circuit"]


MOST_STATES, MOST_POINTS = 16, 80


@register("circuits")
def scan_circuit(machine: Automaton, length: int, *, padding: str = "identity") -> TheoryTransformer:
    """A transformer of ⌈log₂ T⌉ layers that simulates any automaton on words of up to T letters.

    Every position carries a map of the states: n numbers δ(·, σ_t). Layer l copies the map of position t − 2^{l−1}
    into the left channels (attention on circular positions, scores 100 T²(log n + log T)·cos) and composes it with the
    map of t itself, on the right, by `compose_functions`. After the last layer position t holds the map of all letters
    up to t; its value at the start state is read out.

    T padding tokens before the word carry the identity, so that circuits for different start states differ only in the
    readout. `padding="constant"` gives them the constant map to the start state instead, as in the source. When
    the letters permute more than 16 states, maps of fewer points are composed if they distinguish all group elements
    (five points for the 120 states of S_5), and the last layer reads the state off them.

    Size: d = 2n + 2, 2 heads of width max(n, 2), widths 4n² + n and n², largest weight
    max{4n + 2, 10 T √(log n + log T)}. Liu et al. 2023, Theorem 10; corrected: the sign of the rotation, the value
    channel, and that coordinate q_0 must be read.
    """
    integer("length", length, 1)
    choice("padding", padding, ("identity", "constant"))
    fewer = _fewer_points(machine.maps.tobytes(), machine.states) if padding == "identity" else None
    maps = machine.maps if fewer is None else fewer
    if maps.shape[1] > MOST_POINTS:
        raise BadInput(
            f"the scan would compose maps of {maps.shape[1]} states with tables of n⁴ weights: at most {MOST_POINTS} "
            "states, try method 'auto'"
        )
    points, window = maps.shape[1], 1 << max(1, math.ceil(math.log2(max(length, 2))))
    circuit = CircuitBuilder(machine.alphabet, length, anchors=window)
    left = [circuit.channel(f"earlier map of {point}") for point in range(points)]
    right = []
    for point in range(points):
        filler = point if padding == "identity" else machine.start
        right.append(circuit.channel(f"map of {point}", letters=maps[:, point] + 1.0, anchors=filler + 1.0))
    circuit.circle_channels(math.pi / window)
    sharpness = 100 * window**2 * (math.log(points) + math.log(window))
    for depth in range(int(math.log2(window))):
        layer = circuit.layer(depth)
        layer.heads = [
            circuit.look_back(2**depth, sharpness, right, left),
            circuit.look_back(0, sharpness, right, right),
        ]
        layer.feed(compose_functions(points), left + right, right)
        layer.overwritten.update(left)
    state = right[machine.start % points]
    if fewer is None:
        # States are numbered from 1 inside the circuit.
        circuit.relabel(state, [q + 1 for q in range(points)], machine.labels.tolist())
    else:
        _read_group(circuit, machine, maps, right, state)
    note = f"scan: ⌈log₂ {length}⌉ = {circuit.depth} layers compose maps of {points} points over windows that double"
    return to_theory(circuit.read_number(state, machine.outputs), note)


@lru_cache(maxsize=32)  # the search does not depend on the start, and circuits are often built for every start
def _fewer_points(letters: bytes, states: int) -> Int[np.ndarray, "letter point"] | None:
    """Letters that permute many states as permutations of fewer points, where that is possible.

    The points are the cosets of a large subgroup that contains no normal one: a faithful action.
    """
    maps = np.frombuffer(letters, dtype=np.int64).reshape(-1, states)
    if states <= MOST_STATES or any(len(set(row)) < states for row in maps.tolist()):
        return None
    group = FiniteGroup.generated(maps)
    subgroup = core_free_subgroup(group)
    assert group.permutations is not None
    leaders = group.products[:, np.flatnonzero(subgroup)].min(1)
    cosets, coset = np.unique(leaders, return_inverse=True)
    number = {tuple(row): element for element, row in enumerate(group.permutations.tolist())}
    return np.array([coset[group.products[number[tuple(row)], cosets]] for row in maps.tolist()])


def _read_group(circuit: CircuitBuilder, machine: Automaton, maps: np.ndarray, right: list[int], state: int) -> None:
    """Let the last layer turn the map of points into the label of the state that the same element leads to."""
    semigroup = enumerate_semigroup(np.concatenate([maps, machine.maps + maps.shape[1]], 1))
    rows = semigroup.maps.astype(np.int64)
    labels = machine.labels[rows[:, maps.shape[1] + machine.start] - maps.shape[1]]
    last = circuit.layers[-1]
    (network, read, _), *_ = last.pieces
    last.pieces = [(chain(network, tabulate(rows[:, : maps.shape[1]] + 1, labels)), read, [state])]
