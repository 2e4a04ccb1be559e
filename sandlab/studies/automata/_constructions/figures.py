"""Drawings of automata and of the circuits built for them; nothing measured is in them."""

from __future__ import annotations

from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.automata.krohn_rhodes import krohn_rhodes_circuit
from sandlab.circuits.automata.scan import scan_circuit
from sandlab.circuits.computation import draw_computation
from sandlab.circuits.drawing import draw_wiring
from sandlab.worlds.automata.algebra.towers import draw_tower
from sandlab.worlds.automata.catalogue import named_machine
from sandlab.worlds.automata.drawing import draw_cayley_graph, draw_machine, draw_rubik_net


def draw_constructions() -> dict[str, Figure]:
    """The drawings by name."""
    grid, abab = named_machine("Grid4"), named_machine("abab")
    scan, cascade = scan_circuit(grid, 8), krohn_rhodes_circuit(grid, 10)
    composed = "Maps of four positions, composed over windows that double"
    narrowed = "Krohn–Rhodes: positions still possible, level by level"
    return {
        "machines": draw_machines(),
        "scan": draw_computation(scan, grid, grid.read_text("RRLRRRLR"), title=composed),
        "levels": draw_computation(cascade, grid, grid.read_text("RRLRRRLRLL"), title=narrowed),
        "cascade": draw_wiring(krohn_rhodes_circuit(abab, 16), title="The cascade of (abab)* as wired"),
        "tower": draw_tower(abab, title="(abab)*: what stays possible, level by level"),
        "cayley": draw_groups(),
        "cube": draw_rubik_net(turn="F"),
    }


def draw_machines() -> Figure:
    figure, axes = figures.new(2, 2, width=4.4, height=2.9)
    named = {"C2": "a counter modulo 2", "flip-flop": "a memory", "Grid4": "a gridworld", "Grid3x4": "a box"}
    for axis, (name, title) in zip(axes, named.items()):
        draw_machine(named_machine(name), axis, title)
    return figure


def draw_groups() -> Figure:
    figure, axes = figures.new(2, width=5.0, height=4.2)
    for axis, name, title in zip(axes, ("D8", "Q8"), ("D8 = C4 ⋊ C2 splits", "Q8 does not")):
        machine = named_machine(name)
        draw_cayley_graph(machine.semigroup(), axis, title, machine.letters)
    return figure
