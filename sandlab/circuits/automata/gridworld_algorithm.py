"""Where a walker between two walls stands, from prefix sums alone (Liu et al. 2023, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from sandlab.errors import BadInput, integer
from sandlab.worlds.automata.counters import GridProduct
from sandlab.worlds.automata.machine import Automaton

__all__ = ["WalkTrace", "grid_moves", "walk_by_boundaries"]


@dataclass(frozen=True, eq=False)
class WalkTrace:
    """What the algorithm sees at the end of a walk.

    sums       prefix sums z_0, z_1, … with the padding moves in front; `first` is the index of the first real letter
    unique     t_uniq, the last time from which on all S + 1 heights are still visited
    lowest     t_min, last time of the minimum after t_uniq; highest: t_max, of the maximum
    final      t_final, the later of the two: the last touch of a wall, `boundary` (0 or S)
    state      z_T − z_final + boundary
    """

    sums: Int[np.ndarray, "time"]
    first: int
    unique: int
    lowest: int
    highest: int
    final: int
    boundary: int
    state: int

    @property
    def state_by_minimum(self) -> int:
        """z_T − min over t ≥ t_uniq: the same number whichever wall was touched last."""
        return int(self.sums[-1] - self.sums[self.unique :].min())


def walk_by_boundaries(moves: Sequence[int], size: int, start: int = 0) -> WalkTrace:
    """The state of a walk on {0 … S} after moves −1, 0, +1, without stepping through it.

    S moves to the left and `start` moves to the right are put in front, so that the walk begins at a wall. From t_uniq
    on the prefix sums span exactly S; the last time they touch an end of that span is the last time the walker
    touches a wall, and from there on nothing is clamped. Corrected: the span is S, and min{t_min, t_max} = t_uniq.
    """
    wall = integer("size", size, 2) - 1
    integer("start", start, 0, wall)
    padded = np.concatenate([[0], np.full(wall, -1), np.full(start, 1), np.asarray(moves, dtype=np.int64)])
    sums = np.cumsum(padded)
    seen: set[int] = set()
    unique = len(sums) - 1
    while True:
        seen.add(int(sums[unique]))
        if len(seen) == wall + 1:
            break
        unique -= 1
    tail = sums[unique:]
    lowest = unique + int(np.flatnonzero(tail == tail.min())[-1])
    highest = unique + int(np.flatnonzero(tail == tail.max())[-1])
    boundary = 0 if lowest > highest else wall
    final = max(lowest, highest)
    return WalkTrace(
        sums, wall + start + 1, unique, lowest, highest, final, boundary, int(sums[-1] - sums[final] + boundary)
    )


def grid_moves(machine: Automaton) -> tuple[tuple[int, ...], Int[np.ndarray, "letter axis"]]:
    """Sizes of the axes and the move of each letter along them; machines that are no walk in a box are refused."""
    if isinstance(machine, GridProduct):
        middle = machine.sizes
        signs = [sign * np.eye(len(middle), dtype=np.int64)[axis] for axis in range(len(middle)) for sign in (-1, 1)]
        return middle, np.array([np.zeros(len(middle), dtype=np.int64), *signs])
    states = np.arange(machine.states)
    moves = []
    for letter, row in enumerate(machine.maps):
        steps = [step for step in (-1, 0, 1) if (row == np.clip(states + step, 0, len(states) - 1)).all()]
        if len(steps) != 1 or len(states) < 2:
            raise BadInput(
                f"the gridworld circuit needs letters that step left, right or stay, but {machine.letters[letter]!r} "
                "does not: try method 'auto'"
            )
        moves.append(steps[0])
    return (len(states),), np.array(moves)[:, None]
