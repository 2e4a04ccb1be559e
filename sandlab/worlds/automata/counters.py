"""Counters, memories and walks between walls."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sandlab.errors import choice, integer, number, require
from sandlab.registry import register
from sandlab.worlds.automata.family import Family, Observations, Table

__all__ = ["Cyclic", "CyclicProduct", "Grid", "GridProduct", "Memory"]

MOST = 2048  # values of a counter: its table of transitions is written out


@register("worlds")
@dataclass(frozen=True, kw_only=True)
class Cyclic(Family):
    """Counting modulo n, the cyclic group C_n: q_t = q_{t−1} + σ_t mod n. Size 2 is parity.

    moves  "all": every element is a letter; "unit": letters 0 and 1; "one": the single letter 1
    label  "state", or "zero": whether the count is a multiple of n
    """

    size: int = 2
    moves: str = "all"
    observations: ClassVar[Observations] = {"zero": lambda self: [int(state == 0) for state in range(self.size)]}

    def build(self) -> Table:
        integer("size", self.size, 2, MOST)
        added = {"all": range(self.size), "unit": range(2), "one": range(1, 2)}[
            choice("moves", self.moves, ("all", "unit", "one"))
        ]
        return [[(state + step) % self.size for step in added] for state in range(self.size)]

    def default_letters(self) -> list[str]:
        return ["1"] if self.moves == "one" else super().default_letters()


@register("worlds")
@dataclass(frozen=True, kw_only=True)
class CyclicProduct(Family):
    """Several counters side by side, each letter a tuple of steps: C_n × … × C_n."""

    size: int = 2
    copies: int = 2

    def build(self) -> Table:
        integer("size", self.size, 2, MOST)
        integer("copies", self.copies, 1, 20)
        require(self.size**self.copies <= MOST, "size^copies", f"{self.size}^{self.copies}", f"at most {MOST}")
        elements = np.array(list(itertools.product(range(self.size), repeat=self.copies)))
        sums = (elements[:, None] + elements[None]) % self.size
        return sums @ (self.size ** np.arange(self.copies)[::-1])

    def default_states(self) -> list[str]:
        return ["".join(map(str, tuple_)) for tuple_ in itertools.product(range(self.size), repeat=self.copies)]

    def default_letters(self) -> list[str]:
        return self.default_states()


@register("worlds")
@dataclass(frozen=True, kw_only=True)
class Memory(Family):
    """Write or hold: letter ⊥ keeps the state, letter i writes i. Two values make the flip-flop.

    Letters are ⊥ with probability `hold`, else a uniform write.
    """

    values: int = 2
    hold: float = 0.5

    def build(self) -> Table:
        integer("values", self.values, 1, MOST)
        number("hold", self.hold, 0.0, 1.0)
        return [[state, *range(self.values)] for state in range(self.values)]

    @property
    def sampling_probs(self) -> tuple[float, ...]:
        return self.probs or (self.hold, *[(1 - self.hold) / self.values] * self.values)

    def default_letters(self) -> list[str]:
        return ["⊥", *[str(value) for value in range(self.values)]]


@register("worlds")
@dataclass(frozen=True, kw_only=True)
class Grid(Family):
    """A walk on a line between two walls: left and right move by one unless there is a wall.

    q_t = min(max(q_{t−1} ± 1, 0), n − 1); with `stay` a third letter does nothing.
    label  "state", or "boundary": whether the walker is at a wall
    """

    size: int = 4
    stay: bool = False
    observations: ClassVar[Observations] = {
        "boundary": lambda self: [int(state in (0, self.size - 1)) for state in range(self.size)]
    }

    def build(self) -> Table:
        integer("size", self.size, 2, MOST**2)
        moves = [-1, 1, 0] if self.stay else [-1, 1]
        return [[min(max(state + move, 0), self.size - 1) for move in moves] for state in range(self.size)]

    def default_letters(self) -> list[str]:
        return ["L", "R", "⊥"] if self.stay else ["L", "R"]


@register("worlds")
@dataclass(frozen=True, kw_only=True)
class GridProduct(Family):
    """A walk in a box: letter 0 stays, letters 2i + 1 and 2i + 2 step back and forth along axis i.

    The state of coordinates (x₁, …, x_k) is numbered row by row, the last axis fastest.
    """

    sizes: tuple[int, ...] = (3, 4)

    def build(self) -> Table:
        self._set("sizes", tuple(self.sizes))
        require(len(self.sizes) >= 1, "sizes", self.sizes, "one number per axis")
        for size in self.sizes:
            integer("sizes", size, 2)
        require(math.prod(self.sizes) <= MOST**2, "sizes", self.sizes, f"of at most {MOST**2} cells")
        coordinates = np.stack(np.unravel_index(np.arange(np.prod(self.sizes)), self.sizes), -1)
        moves = np.concatenate([np.zeros((1, len(self.sizes)), int), _axis_moves(len(self.sizes))])
        moved = np.clip(coordinates[:, None] + moves, 0, np.array(self.sizes) - 1)
        return np.ravel_multi_index(tuple(np.moveaxis(moved, -1, 0)), self.sizes)

    def default_letters(self) -> list[str]:
        names = "xyz" if len(self.sizes) <= 3 else [f"axis{axis}" for axis in range(len(self.sizes))]
        return ["⊥", *[f"{sign}{name}" for name, _ in zip(names, self.sizes) for sign in "-+"]]

    def default_states(self) -> list[str]:
        return [",".join(map(str, position)) for position in np.ndindex(*self.sizes)]


def _axis_moves(axes: int) -> np.ndarray:
    """−1 and +1 along each axis in turn."""
    return np.stack([sign * np.eye(axes, dtype=int)[axis] for axis in range(axes) for sign in (-1, 1)])
