"""How much two halves of a word must exchange: exact bounds from the table of a function, and what models need."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from sandlab.errors import BadInput, integer, nearest
from sandlab.registry import register

__all__ = ["CommunicationBounds", "bounds_of", "communication_table", "model_sizes"]


def _bits(size: int) -> Int[np.ndarray, "word size"]:
    return np.array(list(itertools.product((0, 1), repeat=size)), dtype=np.int64).reshape(-1, size)


def _disjointness(size: int) -> np.ndarray:
    words = _bits(size)
    return (words @ words.T == 0).astype(int)


def _index(size: int) -> np.ndarray:
    return _bits(size)


def _majority(size: int) -> np.ndarray:
    ones = _bits(size).sum(-1)
    return (ones[:, None] + ones[None, :] > size).astype(int)


def _parity(size: int) -> np.ndarray:
    ones = _bits(size).sum(-1)
    return (ones[:, None] + ones[None, :]) % 2


def _equality(size: int) -> np.ndarray:
    return np.eye(2**size, dtype=int)


FUNCTIONS: dict[str, Callable[[int], Int[np.ndarray, "alice bob"]]] = {
    "disjointness": _disjointness,
    "index": _index,
    "equality": _equality,
    "majority": _majority,
    "parity": _parity,
}


@dataclass(frozen=True)
class CommunicationBounds:
    """Lower bounds on the bits that Alice and Bob exchange, from the table of a function.

    one_way    ⌈log₂ of the number of different rows⌉: exactly what one message from Alice needs
    rank       log₂ of the rank of the table over the reals: a bound for any deterministic protocol
    fooling    log₂ of the size of the fooling set on the diagonal x = complement of x (or x = x)
    """

    one_way: int
    rank: float
    fooling: float


@register("lenses")
def bounds_of(function: str, size: int) -> CommunicationBounds:
    """The bounds of "disjointness", "index", "equality", "majority" or "parity" on n bits for Alice.

    Source: Kushilevitz and Nisan 1997, Communication complexity.
    """
    integer("size", size, low=1, high=12, hint="the table has 2ⁿ rows")
    if function not in FUNCTIONS:
        raise BadInput(f"no function called {function!r}: {nearest(function, FUNCTIONS) or list(FUNCTIONS)}")
    table = FUNCTIONS[function](size)
    rows = len(np.unique(table, axis=0))
    rank = int(np.linalg.matrix_rank(table.astype(float)))
    return CommunicationBounds(math.ceil(math.log2(rows)), math.log2(rank), math.log2(_fooling(table)))


def _fooling(table: np.ndarray) -> int:
    """The larger of two fooling sets: pairs (x, x) or (x, not x) with one value, no two of which can be mixed."""
    if table.shape[0] != table.shape[1]:
        return 1
    count = len(table)
    best = 1
    for partner in (np.arange(count), count - 1 - np.arange(count)):
        square = table[:, partner]  # row x, column y: the value at (x, partner of y)
        for value in (0, 1):
            chosen = np.flatnonzero(np.diag(square) == value)
            inside = square[np.ix_(chosen, chosen)] == value
            mixed = inside & inside.T
            np.fill_diagonal(mixed, False)
            best = max(best, len(chosen)) if not mixed.any() else best
    return best


@register("lenses")
def communication_table(sizes: tuple[int, ...] = (2, 4, 6, 8)) -> list[dict[str, float | str]]:
    """Bounds of every function at several sizes, as rows of a table."""
    return [
        {"function": name, "n": size, "one way": found.one_way, "log rank": found.rank, "log fooling": found.fooling}
        for name in FUNCTIONS
        for size in sizes
        for found in (bounds_of(name, size),)
    ]


@register("lenses")
def model_sizes(bits: int, precision: int = 16) -> dict[str, int]:
    """What a bound of so many bits means: numbers of precision p that a model must pass from one half to the other.

    "recurrent state": width ≥ bits/p; "attention": H(m + 1) ≥ bits/p for one layer of H heads of width m; "two-layer
    transformer": O(1) heads, width and O(log n) bits suffice for induction (0: no bound of this kind).
    """
    integer("bits", bits, low=0)
    integer("precision", precision, low=1)
    needed = math.ceil(bits / precision)
    return {"recurrent state": needed, "attention": needed, "two-layer transformer": 0}
