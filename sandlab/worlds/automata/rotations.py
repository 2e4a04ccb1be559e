"""Automata whose letters are group elements: dihedral, quaternion, symmetric, alternating."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sandlab.errors import integer
from sandlab.registry import register
from sandlab.worlds.automata.family import Family, Observations, Table

__all__ = ["AlternatingGroup", "Dihedral", "Quaternion", "SymmetricGroup"]


@register("worlds")
@dataclass(frozen=True, kw_only=True)
class Dihedral(Family):
    """A reversible car on a circle of n positions, the dihedral group D_2n of order 2n.

    Letter "advance" moves by one in the car's direction, letter "toggle" turns the car round. The state is
    n·direction + position. label  "state", or "position": where the car is, whichever way it faces.
    """

    positions: int = 3
    observations: ClassVar[Observations] = {
        "position": lambda self: [state % self.positions for state in range(2 * self.positions)]
    }

    def build(self) -> Table:
        n = integer("positions", self.positions, 2)
        return [
            [n * turned + (position + 1 - 2 * turned) % n, n * (1 - turned) + position]
            for turned in (0, 1)
            for position in range(n)
        ]

    def default_letters(self) -> list[str]:
        return ["advance", "toggle"]

    def default_states(self) -> list[str]:
        return [f"{position}{arrow}" for arrow in "→←" for position in range(self.positions)]


@register("worlds")
@dataclass(frozen=True, kw_only=True)
class Quaternion(Family):
    """Multiplication of the quaternion units ±1, ±i, ±j, ±k by 1, i, j or k: the group Q_8, i² = j² = k² = ijk = −1.

    q_t = σ_t q_{t−1}. It is no semidirect product of proper subgroups: each of them but the trivial one contains −1.
    """

    def build(self) -> Table:
        # Unit u of sign s is state 2u + s; product[u][v] = (sign, unit) of e_u e_v for units 1, i, j, k.
        product = [
            [(0, 0), (0, 1), (0, 2), (0, 3)],
            [(0, 1), (1, 0), (0, 3), (1, 2)],
            [(0, 2), (1, 3), (1, 0), (0, 1)],
            [(0, 3), (0, 2), (1, 1), (1, 0)],
        ]
        return [
            [2 * product[letter][unit][1] + (product[letter][unit][0] ^ sign) for letter in range(4)]
            for unit in range(4)
            for sign in (0, 1)
        ]

    def default_letters(self) -> list[str]:
        return ["1", "i", "j", "k"]

    def default_states(self) -> list[str]:
        return [sign + unit for unit in "1ijk" for sign in ("", "-")]


@dataclass(frozen=True, kw_only=True)
class _Permutations(Family):
    """Permutations of `points` points, multiplied from the left: q_t = σ_t ∘ q_{t−1}.

    label  "state", or "first": where the first point went, π(1).
    """

    points: int = 4
    observations: ClassVar[Observations] = {"first": lambda self: [element[0] for element in self.elements()]}

    def elements(self) -> list[tuple[int, ...]]:
        """Every permutation, in lexicographic order, the identity first."""
        raise NotImplementedError

    def generators(self) -> list[tuple[int, ...]]:
        raise NotImplementedError

    def build(self) -> Table:
        integer("points", self.points, 3, 7)
        elements, letters = np.array(self.elements()), np.array(self.generators())
        code = self.points ** np.arange(self.points)
        number = dict(zip((elements @ code).tolist(), itertools.count()))
        moved = letters[:, elements].transpose(1, 0, 2) @ code
        return [[number[int(key)] for key in row] for row in moved]

    def default_states(self) -> list[str]:
        return ["".join(str(point + 1) for point in element) for element in self.elements()]

    def default_letters(self) -> list[str]:
        return ["".join(str(point + 1) for point in element) for element in self.generators()]


@register("worlds")
@dataclass(frozen=True, kw_only=True)
class SymmetricGroup(_Permutations):
    """All permutations of n points, S_n; S_5 is the smallest symmetric group that is not solvable.

    Letters: the swap of the first two points, the shift by one, then the next permutations in lexicographic order
    until there are `letters_used` of them. label  "state", or "first": π(1).
    """

    letters_used: int = 8

    def elements(self) -> list[tuple[int, ...]]:
        return list(itertools.permutations(range(self.points)))

    def generators(self) -> list[tuple[int, ...]]:
        everything = self.elements()
        integer("letters_used", self.letters_used, 2, len(everything) - 1)
        swap = (1, 0, *range(2, self.points))
        shift = (*range(1, self.points), 0)
        rest = [element for element in everything[1:] if element not in (swap, shift)]
        return [swap, shift, *rest][: self.letters_used]


@register("worlds")
@dataclass(frozen=True, kw_only=True)
class AlternatingGroup(_Permutations):
    """The even permutations of n points, A_n; letters are the 3-cycles (1 2 i). A_5 (order 60) is simple.

    `idle` adds the identity as a letter. label  "state", or "first": π(1).
    """

    idle: bool = False

    def elements(self) -> list[tuple[int, ...]]:
        return [element for element in itertools.permutations(range(self.points)) if _even(element)]

    def generators(self) -> list[tuple[int, ...]]:
        cycles = []
        for last in range(2, self.points):
            cycle = list(range(self.points))
            cycle[0], cycle[1], cycle[last] = 1, last, 0
            cycles.append(tuple(cycle))
        return [tuple(range(self.points)), *cycles] if self.idle else cycles


def _even(permutation: tuple[int, ...]) -> bool:
    inversions = sum(first > second for first, second in itertools.combinations(permutation, 2))
    return inversions % 2 == 0
