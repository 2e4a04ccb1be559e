"""Transformation semigroups: everything that the letters of an automaton can do to its states."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from sandlab.errors import BadInput

__all__ = ["Semigroup", "enumerate_semigroup"]

LARGEST = 2_000_000
LARGEST_TABLE = 8192


@dataclass(frozen=True, eq=False)
class Semigroup:
    """T(A): the maps of states that words of length ≥ 1 induce, in the order of their shortest words.

    maps[e, q]     where element e sends state q
    letters[σ]     the element of letter σ
    right[e, σ]    the element "first e, then letter σ" (the right Cayley graph)
    parent, last   the shortest word of e is the word of parent[e] followed by letter last[e] (−1: a single letter)
    """

    maps: Int[np.ndarray, "element state"]
    letters: Int[np.ndarray, "letter"]
    right: Int[np.ndarray, "element letter"]
    parent: Int[np.ndarray, "element"]
    last: Int[np.ndarray, "element"]

    def __len__(self) -> int:
        return len(self.maps)

    @property
    def states(self) -> int:
        return self.maps.shape[1]

    def word(self, element: int) -> tuple[int, ...]:
        """A shortest word that induces the element."""
        letters: list[int] = []
        while element >= 0:
            letters.append(int(self.last[element]))
            element = int(self.parent[element])
        return tuple(reversed(letters))

    def find(self, mapping: Int[np.ndarray, "state"]) -> int:
        """The element with this map, or −1."""
        hits = (self.maps == np.asarray(mapping)).all(1).nonzero()[0]
        return int(hits[0]) if len(hits) else -1

    @cached_property
    def products(self) -> Int[np.ndarray, "element element"]:
        """products[e, f]: first e, then f. Column by column along f's shortest word."""
        size = len(self)
        if size > LARGEST_TABLE:
            raise BadInput(f"a multiplication table of {size} elements is too large: at most {LARGEST_TABLE}")
        table = np.empty((size, size), dtype=np.int32)
        for element in range(size):
            before = np.arange(size) if self.parent[element] < 0 else table[:, self.parent[element]]
            table[:, element] = self.right[before, self.last[element]]
        return table

    @cached_property
    def images(self) -> Int[np.ndarray, "element"]:
        """Rank: how many states the map of each element reaches."""
        ordered = np.sort(self.maps, 1)
        return 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(1)

    @property
    def identity(self) -> int:
        """The element that leaves every state alone, or −1."""
        return self.find(np.arange(self.states))

    @property
    def has_identity(self) -> bool:
        return self.identity >= 0

    @property
    def is_group(self) -> bool:
        """Every element is a bijection of the states."""
        return bool((self.images == self.states).all())

    @property
    def is_abelian(self) -> bool:
        """Letters commute, hence all elements do."""
        maps = self.maps[self.letters]
        return all((first[second] == second[first]).all() for first in maps for second in maps)

    @cached_property
    def is_aperiodic(self) -> bool:
        """No element cycles: s^m = s^(m+1) for some m, for all s. Equivalently, every subgroup is trivial."""
        power = self.maps.astype(np.int64)
        for _ in range(max(1, (self.states - 1).bit_length())):
            power = np.take_along_axis(power, power, 1)
        return bool((np.take_along_axis(self.maps.astype(np.int64), power, 1) == power).all())

    @cached_property
    def idempotents(self) -> Bool[np.ndarray, "element"]:
        """s·s = s."""
        maps = self.maps.astype(np.int64)
        return (np.take_along_axis(maps, maps, 1) == maps).all(1)


def enumerate_semigroup(letter_maps: Int[np.ndarray, "letter state"], limit: int = LARGEST) -> Semigroup:
    """Close the letters' maps under composition, breadth first: shortest words come first.

    More than `limit` elements are refused (|Q|^|Q| of them are possible).
    """
    letter_maps = np.asarray(letter_maps)
    states = letter_maps.shape[1]
    kind = np.uint8 if states <= 256 else np.uint16
    steps = letter_maps.astype(kind)
    known: dict[bytes, int] = {}
    parent: list[int] = []
    last: list[int] = []
    maps, right = _Rows(kind, states), _Rows(np.int32, len(steps))
    letters = _enter(known, steps, maps, parent, last, np.full(len(steps), -1), np.arange(len(steps)))
    begin = 0
    while begin < len(known):
        frontier = maps.rows[begin : len(known)]
        begin, old = len(known), begin
        # successors[e, σ, q] = σ(e(q)): first the element, then the letter.
        successors = steps[:, frontier].transpose(1, 0, 2)
        parents = np.repeat(np.arange(old, begin), len(steps))
        lasts = np.tile(np.arange(len(steps)), begin - old)
        found = _enter(known, successors.reshape(-1, states), maps, parent, last, parents, lasts)
        right.append(found.reshape(-1, len(steps)))
        if len(known) > limit:
            raise BadInput(f"the semigroup has more than {limit} elements: raise the limit or take a smaller machine")
    return Semigroup(maps.rows, letters, right.rows, np.array(parent), np.array(last))


class _Rows:
    """A growing matrix: doubling keeps the cost of appending constant."""

    def __init__(self, kind: type, columns: int) -> None:
        self.store: np.ndarray = np.empty((64, columns), dtype=kind)
        self.used = 0

    def append(self, rows: np.ndarray) -> None:
        while self.used + len(rows) > len(self.store):
            self.store = np.concatenate([self.store, np.empty_like(self.store)])
        self.store[self.used : self.used + len(rows)] = rows
        self.used += len(rows)

    @property
    def rows(self) -> np.ndarray:
        return self.store[: self.used]


def _enter(
    known: dict[bytes, int],
    candidates: np.ndarray,
    maps: _Rows,
    parent: list[int],
    last: list[int],
    parents: np.ndarray,
    lasts: np.ndarray,
) -> np.ndarray:
    """Number the candidate maps; unseen ones become elements with the given parent and last letter."""
    candidates = np.ascontiguousarray(candidates)
    width = candidates.shape[1] * candidates.itemsize
    raw = candidates.tobytes()
    numbers = np.empty(len(candidates), dtype=np.int32)
    fresh = []
    for row in range(len(candidates)):
        key = raw[row * width : (row + 1) * width]
        number = known.setdefault(key, len(known))
        numbers[row] = number
        if number == len(parent):
            fresh.append(row)
            parent.append(int(parents[row]))
            last.append(int(lasts[row]))
    maps.append(candidates[fresh])
    return numbers
