"""Automata by their usual names: "C3", "D8", "Grid9", "Dyck4_2", "S5"."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from sandlab.errors import BadInput, nearest, require
from sandlab.worlds.automata.counters import Cyclic, CyclicProduct, Grid, GridProduct, Memory
from sandlab.worlds.automata.languages import Abab
from sandlab.worlds.automata.machine import Automaton
from sandlab.worlds.automata.rotations import AlternatingGroup, Dihedral, Quaternion, SymmetricGroup
from sandlab.worlds.automata.stacks import DyckStack

__all__ = ["DEPTH_TABLE", "machine_names", "named_machine"]

# The nineteen automata on which depth was measured (Liu et al. 2023, figure 5 and appendix).
DEPTH_TABLE = (
    "Dyck4_2",
    "Grid4",
    "Grid9",
    *(f"C{size}" for size in range(2, 9)),
    "C2^2",
    "C2^3",
    "D6",
    "D8",
    "Q8",
    "A4",
    "A5",
    "S4",
    "S5",
)

_LARGEST = 1000  # states of a counter: its table of transitions is written out
_PATTERNS: list[tuple[str, Callable[..., Automaton]]] = [
    (r"parity", lambda **o: Cyclic(size=2, **o)),
    (r"flip-?flop", lambda **o: Memory(values=2, **o)),
    (r"memory(\d+)", lambda n, **o: Memory(values=n, **o)),
    (r"c(\d+)", lambda n, **o: Cyclic(size=n, **o)),
    (r"c(\d+)\^(\d+)", lambda n, m, **o: CyclicProduct(size=n, copies=m, **o)),
    (r"grid(\d+)", lambda n, **o: Grid(size=n, **o)),
    (r"grid(\d+)x(\d+)", lambda n, m, **o: GridProduct(sizes=(n, m), **o)),
    (r"d(\d+)", lambda order, **o: _dihedral(order, **o)),
    (r"q8", lambda **o: Quaternion(**o)),
    (r"s(\d+)", lambda n, **o: SymmetricGroup(points=n, **_letters_for(n, o))),
    (r"a(\d+)", lambda n, **o: AlternatingGroup(points=n, **o)),
    (r"dyck(\d+)_(\d+)", lambda n, k, **o: DyckStack(depth=n, types=k, **o)),
    (r"abab", lambda **o: Abab(**o)),
]


def machine_names() -> list[str]:
    """Known names; other numbers work as well ("Grid4" → "Grid7")."""
    return [*DEPTH_TABLE, "parity", "flip-flop", "memory4", "Grid3x4", "abab"]


def named_machine(name: str, **options: Any) -> Automaton:
    """The automaton of that name, with the options of `Automaton`: `named_machine("S5", length=40)`.

    D is followed by the order of the group (D6, D8); C2^3 is three counters; Dyck4_2 has depth 4 and 2 bracket types.
    """
    for pattern, build in _PATTERNS:
        found = re.fullmatch(pattern, name.strip().lower(), flags=re.ASCII)
        if found:
            numbers = [int(digits) if len(digits) <= 9 else 10**9 for digits in found.groups()]
            states = numbers[0] ** min(numbers[1], 64) if "^" in name and numbers[0] > 1 else math.prod(numbers)
            require(states <= _LARGEST, "an automaton's size", name, f"at most {_LARGEST}")
            return build(*numbers, **options)
    hint = nearest(name, machine_names()) or "see `sandlab.worlds.machine_names()`"
    raise BadInput(f"no automaton called {name!r}: {hint}")


def _dihedral(order: int, **options: Any) -> Automaton:
    if order % 2:
        raise BadInput(f"a dihedral group has an even order, got D{order}: D6 is the triangle, D8 the square")
    return Dihedral(positions=order // 2, **options)


def _letters_for(points: int, options: dict[str, object]) -> dict[str, Any]:
    # S_3 has only five elements besides the identity.
    return {"letters_used": 5, **options} if points == 3 else options
