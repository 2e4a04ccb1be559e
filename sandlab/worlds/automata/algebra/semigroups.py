"""Transformation semigroups: all maps of states that the words of an automaton induce."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from sandlab.errors import BadInput

__all__ = ["Semigroup", "enumerate_semigroup"]

LARGEST = 2_000_000
LARGEST_TABLE = 8192
MOST_CODED_STATES = 15


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
        """The element that fixes every state, or −1."""
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
    known = _Codes(states) if states <= MOST_CODED_STATES else _Bytes()
    maps, right, parent, last = _Rows(kind, states), _Rows(np.int32, len(steps)), [], []
    letters, fresh = known.enter(steps)
    maps.append(steps[fresh])
    parent.append(np.full(len(fresh), -1))
    last.append(fresh)
    begin = 0
    while begin < maps.used:
        frontier = maps.rows[begin : maps.used]
        begin, old = maps.used, begin
        # successors[e, σ, q] = σ(e(q)): first the element, then the letter.
        successors = steps[:, frontier].transpose(1, 0, 2).reshape(-1, states)
        numbers, fresh = known.enter(successors)
        right.append(numbers.reshape(-1, len(steps)))
        maps.append(successors[fresh])
        parent.append(old + fresh // len(steps))
        last.append(fresh % len(steps))
        if maps.used > limit:
            raise BadInput(f"the semigroup has more than {limit} elements: raise the limit or take a smaller machine")
    return Semigroup(maps.rows, letters, right.rows, np.concatenate(parent), np.concatenate(last))


class _Codes:
    """Numbers of maps of few states: a map is a whole number with its images as digits, looked up by bisection."""

    def __init__(self, states: int) -> None:
        self.weights = (states ** np.arange(states)).astype(np.int64)
        self.sorted = np.empty(0, dtype=np.int64)
        self.numbers = np.empty(0, dtype=np.int32)

    def enter(self, maps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of each map, and the rows at which maps appear for the first time, in order."""
        codes = maps.astype(np.int64) @ self.weights
        different, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        index = np.asarray(np.searchsorted(self.sorted, different))
        seen = np.zeros(len(different), dtype=bool)
        inside = index < len(self.sorted)
        seen[inside] = self.sorted[index[inside]] == different[inside]
        numbers = np.empty(len(different), dtype=np.int32)
        numbers[seen] = self.numbers[index[seen]]
        order: np.ndarray = np.argsort(first[~seen], kind="stable")
        fresh_numbers = np.empty(len(order), dtype=np.int32)
        fresh_numbers[order] = len(self.sorted) + np.arange(len(order))
        numbers[~seen] = fresh_numbers
        self.numbers = np.insert(self.numbers, index[~seen], fresh_numbers)
        self.sorted = np.insert(self.sorted, index[~seen], different[~seen])
        return numbers[inverse.reshape(-1)], np.sort(first[~seen])


class _Bytes:
    """Numbers of maps of many states: a dictionary from their bytes."""

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {}

    def enter(self, maps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of each map, and the rows at which maps appear for the first time, in order."""
        raw, width = np.ascontiguousarray(maps).tobytes(), maps.shape[1] * maps.itemsize
        numbers, fresh = np.empty(len(maps), dtype=np.int32), []
        for row in range(len(maps)):
            before = len(self.known)
            numbers[row] = self.known.setdefault(raw[row * width : (row + 1) * width], before)
            if len(self.known) > before:
                fresh.append(row)
        return numbers, np.array(fresh, dtype=np.int64)


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
