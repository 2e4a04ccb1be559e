"""Any solvable automaton in constant depth: the levels of its holonomy decomposition, one after the other (Thm 11)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

from sandlab.circuits.automata.permutation_reset import last_reset
from sandlab.circuits.automata.programs import GroupProgram, group_program
from sandlab.circuits.builder import CircuitBuilder, CircuitLayer
from sandlab.circuits.gadgets import interpolate, tabulate
from sandlab.circuits.targets import to_theory
from sandlab.errors import BadInput, integer
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.registry import register
from sandlab.worlds.automata.algebra.holonomy import Component, Holonomy
from sandlab.worlds.automata.machine import Automaton

__all__ = ["DepthReport", "depth_report", "krohn_rhodes_circuit", "require_solvable"]


@dataclass
class Level:
    """One level as a permutation-reset machine: its components share one memory.

    parts       component number → (first of its values, program of its group or None)
    triples     (set before, set after, letter) that can meet at this level
    """

    number: int
    parts: dict[int, tuple[int, GroupProgram | None]]
    triples: set[tuple[int, int, int]] = field(default_factory=set)

    @property
    def programs(self) -> dict[int, GroupProgram]:
        return {component: program for component, (_, program) in self.parts.items() if program is not None}

    @property
    def code_width(self) -> int:
        return sum(program.codes.shape[1] for program in self.programs.values())


@register("circuits")
def krohn_rhodes_circuit(machine: Automaton, length: int) -> TheoryTransformer:
    """A transformer whose depth does not depend on T, for any automaton whose groups are solvable.

    The holonomy decomposition narrows the state down level by level: Z, the set of states still possible, starts as
    Q and each level picks a tile inside it. A level is a permutation-reset machine. Its letter follows from Z before
    the step (a head looks back by one), Z after it (at the position itself) and the letter σ: where σ carries the one
    set onto the other the tiles are permuted, otherwise the level is reset. So each level takes a wiring layer (except
    the first), the layers of its group program, a layer that reads the last reset and one that applies the group since.

    The anchor at position 0 counts as a reset to q_0's tile on every level. Liu et al. 2023, Lemma 21 and Theorem 11;
    corrected: the look-back by one position, and the anchor. The decomposition follows Eilenberg 1976.
    """
    integer("length", length, 1)
    require_solvable(machine)
    form = machine.decomposition
    circuit = CircuitBuilder(machine.alphabet, length, anchors=1)
    channels = _Channels(circuit, machine, form)
    levels = _levels(form, machine.alphabet)
    depth, start = 0, form.encode(machine.start)
    for level in levels:
        if level.number < form.levels:
            _wire(circuit.layer(depth), channels, form, level, start)
            depth += 1
        else:
            _embed(channels, form, level, start)
        depth = _run_level(circuit, depth, channels, form, level, machine)
    if not levels:
        circuit.letter_values[channels.current][:] = machine.labels[0]
    groups = sorted({form.components[c].group_name for level in levels for c in level.programs})
    found = f"groups {', '.join(groups)}" if groups else "no groups"
    note = f"krohn-rhodes: {form.levels} levels, {found}, depth {circuit.depth} whatever the length"
    return to_theory(circuit.read_number(channels.current, machine.outputs), note)


def require_solvable(machine: Automaton) -> None:
    """Refuse a machine that holds a group which is not solvable, and say which."""
    for component in machine.decomposition.components:
        if not component.solvable:
            raise BadInput(
                f"no circuit of constant depth is known for this machine: its semigroup holds {component.group_name} "
                f"(order {len(component.group)}, acting on {len(component.tiles)} sets of states), which is not "
                "solvable; take method 'scan'"
            )


@dataclass(frozen=True)
class DepthReport:
    """Whether constant depth is possible: the groups of every level, and what follows from them."""

    solvable: bool
    levels: int
    groups: tuple[str, ...]
    statement: str


def depth_report(machine: Automaton) -> DepthReport:
    """What the decomposition says about the depth of any simulator.

    A solvable machine has a circuit of constant depth. For one that is not, none with O(log T) bits, polynomial
    width and constant depth exists for all T unless TC⁰ = NC¹ (Barrington 1989; Liu et al. 2023, Theorem 13): the
    word problem of such a group is complete for NC¹. The smallest such group, A5, has order 60 and acts on 5 states.
    """
    form = machine.decomposition
    names = tuple(component.group_name for component in form.components if len(component.group) > 1)
    bad = [component for component in form.components if not component.solvable]
    if not bad:
        words = f"solvable: constant depth, {form.levels} level{'s' if form.levels != 1 else ''}"
    else:
        words = (
            f"not solvable ({bad[0].group_name}, order {len(bad[0].group)}): no constant depth with log T bits and "
            "polynomial width unless TC⁰ = NC¹; log₂ T layers suffice"
        )
    return DepthReport(not bad, form.levels, names, words)


class _Channels:
    """The channels all levels share."""

    def __init__(self, circuit: CircuitBuilder, machine: Automaton, form: Holonomy) -> None:
        self.circuit = circuit
        everything = np.full(machine.alphabet, float(form.everything))
        self.current = circuit.channel("possible states", letters=everything, anchors=float(form.everything))
        self.previous = circuit.channel("possible states before")
        self.letter = circuit.channel("letter", letters=np.arange(machine.alphabet), anchors=float(machine.alphabet))
        self.reset = circuit.channel("reset")
        self.value = circuit.channel("value")
        self.running: list[int] = []
        self.copied: list[int] = []

    def codes(self, width: int) -> tuple[list[int], list[int]]:
        """Channels for group codes and their copies at the last reset, shared by all levels."""
        while len(self.running) < width:
            index = len(self.running)
            self.running.append(self.circuit.channel(f"code {index}"))
            self.copied.append(self.circuit.channel(f"code {index} at reset"))
        return self.running[:width], self.copied[:width]


def _levels(form: Holonomy, letters: int) -> list[Level]:
    """Levels from the top, with every (before, after, letter) that some choice of tiles leads to."""
    made = []
    triples = {(form.everything, form.everything, letter) for letter in range(letters)}
    for number in range(form.levels, 0, -1):
        parts: dict[int, tuple[int, GroupProgram | None]] = {}
        first = 0
        for index, component in enumerate(form.components):
            if component.level == number:
                parts[index] = (first, group_program(component.group) if len(component.group) > 1 else None)
                first += len(component.tiles)
        made.append(Level(number, parts, triples))
        triples = {after for triple in triples for after in _successors(form, number, *triple)}
    return made


def _successors(form: Holonomy, level: int, before: int, after: int, letter: int) -> list[tuple[int, int, int]]:
    """The triples one level down, one for each tile that the set before may be in."""
    tiles = range(len(form.components[form.component[before]].tiles)) if form.height[before] == level else [None]
    move = form.move(before, after, letter) if form.height[after] == level else None
    found = []
    for tile in tiles:
        lower_before = before if tile is None else form.refine(before, tile)
        lower_after = after
        if move is not None:
            chosen = move.reset if move.permutation is None else move.permutation[tile or 0]
            assert chosen is not None
            lower_after = form.refine(after, chosen)
        found.append((lower_before, lower_after, letter))
    return found


def _signal(form: Holonomy, level: Level, before: int, after: int, letter: int) -> np.ndarray:
    """What the level's machine reads: reset flag, value written, and one group code per component."""
    signal = np.zeros(2 + level.code_width)
    if form.height[after] != level.number:
        return signal
    component = int(form.component[after])
    move = form.move(before, after, letter)
    if move.permutation is None:
        assert move.reset is not None
        signal[:2] = 1, level.parts[component][0] + move.reset
        return signal
    program = level.parts[component][1]
    if program is not None:
        element = int((_permutations(program) == np.array(move.permutation)).all(1).argmax())
        offset = 2 + _code_offset(level, component)
        signal[offset : offset + program.codes.shape[1]] = program.codes[element]
    return signal


def _code_offset(level: Level, component: int) -> int:
    return sum(program.codes.shape[1] for other, program in level.programs.items() if other < component)


def _start_signal(form: Holonomy, level: Level, start: np.ndarray) -> tuple[int, np.ndarray]:
    """Where q_0's path stands above the level, and its reset to q_0's tile (any tile when the level is idle there)."""
    current = form.everything
    while form.height[current] > level.number:
        current = form.refine(current, int(start[form.component[current]]))
    signal = np.zeros(2 + level.code_width)
    signal[0] = 1
    if form.height[current] == level.number:
        component = int(form.component[current])
        signal[1] = level.parts[component][0] + start[component]
    return current, signal


def _embed(channels: _Channels, form: Holonomy, level: Level, start: np.ndarray) -> None:
    """The top level reads its letters straight from the embedding."""
    running, _ = channels.codes(level.code_width)
    targets = [channels.reset, channels.value, *running]
    by_letter = np.array([_signal(form, level, *triple) for triple in sorted(level.triples, key=lambda t: t[2])])
    _, at_anchor = _start_signal(form, level, start)
    for i, channel in enumerate(targets):
        channels.circuit.letter_values[channel][:] = by_letter[:, i]
        channels.circuit.anchor_values[channel][:] = at_anchor[i]


def _wire(layer: CircuitLayer, channels: _Channels, form: Holonomy, level: Level, start: np.ndarray) -> None:
    """Look back by one, then a table of (before, after, letter); what is not listed neither permutes nor resets."""
    circuit = channels.circuit
    running, _ = channels.codes(level.code_width)
    tokens = circuit.tokens
    sharpness = 100 * tokens**2 * (math.log(len(form.sets)) + math.log(tokens))
    circuit.circle_channels()
    layer.heads.append(circuit.look_back(1, sharpness, [channels.current], [channels.previous]))
    current, at_anchor = _start_signal(form, level, start)
    rows = {(current, current, len(circuit.letter_values[0])): at_anchor}
    for triple in sorted(level.triples):
        signal = _signal(form, level, *triple)
        if signal.any():
            rows[triple] = signal
    table = tabulate(np.array(list(rows)), np.array(list(rows.values())))
    layer.feed(
        table, [channels.previous, channels.current, channels.letter], [channels.reset, channels.value, *running]
    )


def _run_level(
    circuit: CircuitBuilder, depth: int, channels: _Channels, form: Holonomy, level: Level, machine: Automaton
) -> int:
    """Group programs, last reset, the group since then; Z becomes the tile inside Z. Returns the next free layer."""
    running, copied = channels.codes(level.code_width)
    largest = max(
        sum(len(form.components[c].tiles) for c in level.parts), *(p.codes.max() for p in level.programs.values()), 1
    )
    deepest = 0
    for component, program in level.programs.items():
        offset = _code_offset(level, component)
        program.emit(circuit, depth, running[offset : offset + program.codes.shape[1]])
        deepest = max(deepest, program.depth)
    memory = circuit.layer(depth + deepest)
    memory.heads.append(
        last_reset(circuit, channels.reset, largest, [channels.value, *running], [channels.value, *copied])
    )
    goal = machine.labels if level.number == 1 else None
    if not level.programs:
        _narrow(memory, channels, form, level, goal)
        return depth + 1
    _undo(memory, channels, form, level, copied)
    _narrow(circuit.layer(depth + deepest + 1), channels, form, level, goal)
    return depth + deepest + 2


def _undo(layer: CircuitLayer, channels: _Channels, form: Holonomy, level: Level, copied: list[int]) -> None:
    """x = Φ(g_≤r⁻¹)(value) for components with a group, the rounded value for others; their sum, only one is not 0."""
    plain: list[int] = []
    for component, (first, program) in level.parts.items():
        tiles = len(form.components[component].tiles)
        if program is None:
            plain += range(first, first + tiles)
            continue
        g, tile, points = _code_points(program, tiles, first)
        undone = _permutations(program)[program.group.inverses[g], tile]
        offset = _code_offset(level, component)
        read = [*copied[offset : offset + program.codes.shape[1]], channels.value]
        layer.feed(tabulate(points, first + undone), read, [channels.value])
    if plain:
        layer.feed(interpolate(plain, np.array(plain), gap=1.0), [channels.value], [channels.value])


def _narrow(layer: CircuitLayer, channels: _Channels, form: Holonomy, level: Level, labels: np.ndarray | None) -> None:
    """Z ↦ the tile inside Z; on the last level, the label of the one state that is left.

    Tables give the change of Z, which is added: sets that this level does not concern stay.
    """
    for component, (first, program) in level.parts.items():
        found = form.components[component]
        members = np.array(found.members)
        tiles = len(found.tiles)
        if program is None:
            value = np.repeat(np.arange(tiles), len(members))
            points = np.column_stack([first + value, np.tile(members, tiles)])
            read = [channels.value, channels.current]
        else:
            g, tile, codes = _code_points(program, tiles, first)
            value = np.repeat(_permutations(program)[g, tile], len(members))
            points = np.column_stack([np.repeat(codes, len(members), 0), np.tile(members, len(codes))])
            offset = _code_offset(level, component)
            read = [*channels.running[offset : offset + program.codes.shape[1]], channels.value, channels.current]
        sets = points[:, -1]
        change = _change(form, sets, value, found, labels)
        layer.feed(tabulate(points, change), read, [channels.current], add=True)
    if labels is not None and (labels != np.arange(len(labels))).any():
        states = np.arange(len(labels))
        layer.feed(interpolate(states, labels - states, gap=1.0), [channels.current], [channels.current], add=True)


def _change(
    form: Holonomy, sets: np.ndarray, tiles: np.ndarray, component: Component, labels: np.ndarray | None
) -> np.ndarray:
    inner = {(s, t): form.refine(s, t) for s in component.members for t in range(len(component.tiles))}
    reached = np.array([inner[int(s), int(t)] for s, t in zip(sets, tiles)])
    return (reached if labels is None else labels[reached]) - sets


def _permutations(program: GroupProgram) -> Int[np.ndarray, "element tile"]:
    assert program.group.permutations is not None
    return program.group.permutations


def _code_points(program: GroupProgram, tiles: int, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every (element, tile) with the point (code, value) that stands for it."""
    g, tile = np.divmod(np.arange(len(program.group) * tiles), tiles)
    return g, tile, np.column_stack([program.codes[g], first + tile])
