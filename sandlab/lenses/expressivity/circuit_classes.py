"""The ladder of circuit classes: which tasks and which models stand on each rung, and a check where one is possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from sandlab.circuits.automata.atoms import counter_circuit, memory_circuit
from sandlab.circuits.automata.krohn_rhodes import krohn_rhodes_circuit
from sandlab.circuits.automata.scan import scan_circuit
from sandlab.circuits.expressivity.crasp import all_words
from sandlab.circuits.expressivity.crasp_compiler import compile_crasp, run_compiled
from sandlab.circuits.expressivity.crasp_programs import crasp_program
from sandlab.circuits.reasoning.connectivity import repeated_squaring, squaring_inputs
from sandlab.circuits.reasoning.gate_by_gate import gate_by_gate
from sandlab.errors import BadInput
from sandlab.lenses.token_accuracy import accuracy_on
from sandlab.models.base import Model
from sandlab.random import rng
from sandlab.registry import register
from sandlab.worlds.automata.catalogue import named_machine
from sandlab.worlds.automata.machine import Automaton
from sandlab.worlds.reasoning.boolean_circuits import CircuitEvaluation

__all__ = ["Rung", "check_rung", "circuit_class_table"]


@dataclass(frozen=True)
class Rung:
    """One class of problems.

    name         of the class
    meaning      the circuits that decide it
    problems     tasks of the laboratory that lie in it and (as far as is known) not on a lower rung
    models       what is known of models: upper bounds hold for all weights, "solves" is a construction
    sources      where this is shown
    assumption   what a separation from the rung below rests on; empty when it is proved
    checked      what `check` tries, in words
    check        a function that is true when the construction works, or None
    """

    name: str
    meaning: str
    problems: tuple[str, ...]
    models: tuple[str, ...]
    sources: tuple[str, ...]
    assumption: str
    checked: str
    check: Callable[[], bool] | None = None


def _simulates(model: Model, machine: Automaton, words: torch.Tensor) -> bool:
    with torch.no_grad():
        return torch.equal(model(words).argmax(-1), machine.run(words))


def _memory() -> bool:
    machine = named_machine("flip-flop", length=7)
    words = torch.as_tensor(all_words(machine.vocab, 7))
    return _simulates(memory_circuit(machine, 7), machine, words) and _grid()


def _grid() -> bool:
    machine = named_machine("Grid4", length=24)
    words = torch.randint(0, machine.vocab, (64, 24), generator=rng(0, "grid"))
    return _simulates(krohn_rhodes_circuit(machine, 24), machine, words)


def _counters() -> bool:
    for name in ("C2", "C3"):
        machine = named_machine(name, length=64)
        words = torch.randint(0, machine.vocab, (64, 64), generator=rng(0, name))
        model = counter_circuit(machine, 64)
        if model.config.layers != 1 or not _simulates(model, machine, words):
            return False
    return True


def _majority() -> bool:
    for name in ("majority", "dyck-1"):
        program, words = crasp_program(name), all_words(2, 9)
        found = run_compiled(compile_crasp(program, 9), torch.as_tensor(words))
        if not np.array_equal(found.numpy(), program.run(words)):
            return False
    return True


def _permutations() -> bool:
    """S₅ is not solvable; ⌈log₂ T⌉ layers compose its words."""
    machine = named_machine("S5", length=16)
    words = torch.randint(0, machine.vocab, (32, 16), generator=rng(0, "S5"))
    model = scan_circuit(machine, 16)
    return not machine.is_solvable and model.config.layers <= 5 and _simulates(model, machine, words)


def _connectivity() -> bool:
    """⌈log₂ n⌉ squaring layers find the pairs that n − 1 steps along edges join, all pairs of three random graphs."""
    for size, edges in ((5, 4), (9, 9), (12, 11)):
        ends = torch.randint(0, size, (edges, 2), generator=rng(0, "edges", size))
        step = torch.eye(size, dtype=torch.float64)
        step[ends[:, 0], ends[:, 1]] = step[ends[:, 1], ends[:, 0]] = 1.0
        joined = torch.linalg.matrix_power(step, size - 1).flatten() > 0
        pairs = torch.cartesian_prod(torch.arange(size), torch.arange(size))
        model = repeated_squaring(size, edges)
        with torch.no_grad():
            given = squaring_inputs(ends.expand(len(pairs), -1, -1), pairs[:, 0], pairs[:, 1], size)
            found = model(given)[:, -1].argmax(-1).bool()
        if model.config.layers != (size - 1).bit_length() + 2 or not torch.equal(found, joined):
            return False
    return True


def _circuits() -> bool:
    """Two layers write the value of every gate of 64 random circuits, one step each."""
    world = CircuitEvaluation(inputs=4, gates=24)
    return bool(accuracy_on(gate_by_gate(world), world.sample(64, rng=rng(0, "circuits"))) == 1.0)


_LADDER = (
    Rung(
        "AC⁰", "constant depth, polynomial size, AND/OR/NOT of any number of inputs",
        ("one-bit memory (flip-flop)", "a*b*", "one-dimensional gridworlds", "Dyck of bounded depth", "addition"),
        ("hard attention with a unique choice: inside AC⁰", "constant precision and depth: inside AC⁰"),
        ("Hao, Angluin and Frank 2022", "Li et al. 2024"), "",
        "one layer reads the last write of every word of seven letters; a cascade walks a gridworld", _memory,
    ),
    Rung(
        "ACC⁰", "AC⁰ with gates that count modulo a constant",
        ("parity and other counters", "automata whose groups are solvable"),
        ("depth independent of T by Krohn–Rhodes: solves solvable automata",),
        ("Barrington and Thérien 1988", "Liu et al. 2023"), "",
        "one layer counts modulo 2 and 3 at length 64", _counters,
    ),
    Rung(
        "TC⁰", "constant depth, polynomial size, with gates that compare counts",
        ("majority", "Dyck-1", "sorting", "multiplication"),
        ("log precision, constant depth: inside TC⁰", "C-RASP programs: solved by softmax transformers"),
        ("Merrill and Sabharwal 2022", "Yang and Chiang 2024"), "majority is not in ACC⁰ (open)",
        "compiled programs for majority and Dyck-1 equal their interpreter on every word of nine letters",
        _majority,
    ),
    Rung(
        "NC¹", "logarithmic depth, gates of two inputs",
        ("word problem of S₅ (complete)", "evaluation of Boolean formulas", "all regular languages"),
        ("O(log T) layers: solve every automaton by a scan", "recurrent networks: solve every automaton"),
        ("Barrington 1989", "Liu et al. 2023", "Merrill and Sabharwal 2022"), "TC⁰ ≠ NC¹",
        "five layers compose words of sixteen permutations of S₅, which is not solvable", _permutations,
    ),
    Rung(
        "L and NL", "logarithmic space, deterministic or not",
        ("connectivity of undirected (L) and directed (NL) graphs",),
        ("O(log T) layers: solve connectivity", "O(log T) steps of thought: do not"),
        ("Merrill and Sabharwal 2024", "Sanford et al. 2024"), "NC¹ ≠ L",
        "⌈log₂ n⌉ squaring layers decide connectivity of every pair in graphs of up to twelve vertices", _connectivity,
    ),
    Rung(
        "P", "polynomial time",
        ("value of a circuit (complete)",),
        ("polynomially many steps of thought: solve every problem of P", "without thought: inside TC⁰"),
        ("Feng et al. 2023", "Merrill and Sabharwal 2023", "Li et al. 2024"), "NC ≠ P",
        "two layers that write one gate after another evaluate random circuits of 24 gates", _circuits,
    ),
)  # fmt: skip


@register("lenses")
def circuit_class_table() -> tuple[Rung, ...]:
    """The rungs from the lowest to the highest.

    AC⁰ ⊂ ACC⁰ ⊆ TC⁰ ⊆ NC¹ ⊆ L ⊆ NL ⊆ P. All of it is asymptotic: at a fixed length every task is finite.
    """
    return _LADDER


@register("lenses")
def check_rung(name: str) -> bool:
    """Run the check of one rung: `check_rung("NC¹")`."""
    found = [rung for rung in _LADDER if rung.name == name]
    if not found or found[0].check is None:
        raise BadInput(f"no rung called {name!r}: there are {', '.join(rung.name for rung in _LADDER)}")
    return found[0].check()
