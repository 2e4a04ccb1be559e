"""The operations that RASP-L programs are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

OPERATORS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "%": np.mod,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
REDUCTIONS = ("max", "min", "mean")


@dataclass(frozen=True)
class Source:
    """tokens or indices"""

    name: str


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Map:
    """An operator, position by position; "where" and "not" besides those of two arguments."""

    operator: str
    parts: tuple[Sequence_, ...]


@dataclass(frozen=True)
class Select:
    """All of the comparisons (k, q, op) hold between the key's and the query's position, and the key is not later."""

    conditions: tuple[tuple[Sequence_, Sequence_, str], ...]


@dataclass(frozen=True)
class Aggregate:
    selector: Select
    value: Sequence_
    reduction: str


@dataclass(frozen=True)
class Width:
    selector: Select


Sequence_: TypeAlias = "Source | Number | Map | Aggregate | Width"
Node: TypeAlias = "Sequence_ | Select"


def apply(operator: str, values: list[np.ndarray]) -> np.ndarray:
    """An operator on arrays of numbers; truth values are 0 and 1."""
    if operator == "where":
        return np.where(values[0] != 0, values[1], values[2])
    if operator == "not":
        return (values[0] == 0).astype(np.int64)
    if operator in ("//", "%"):
        # Division by zero is zero, as for an empty selection: a program may divide where its result is not used.
        safe = np.where(values[1] == 0, 1, values[1])
        return np.where(values[1] == 0, 0, OPERATORS[operator](values[0], safe))
    result = OPERATORS[operator](values[0], values[1])
    return result.astype(np.int64) if result.dtype == bool else result


def inner_nodes(node: Node) -> tuple[Node, ...]:
    """What an operation is made of."""
    if isinstance(node, Map):
        return node.parts
    if isinstance(node, Select):
        return tuple(part for key, query, _ in node.conditions for part in (key, query))
    if isinstance(node, Aggregate):
        return (node.selector, node.value)
    return (node.selector,) if isinstance(node, Width) else ()


def walk(node: Node, seen: set[int] | None = None) -> Iterator[Node]:
    seen = set() if seen is None else seen
    if id(node) in seen:
        return
    seen.add(id(node))
    for inner in inner_nodes(node):
        yield from walk(inner, seen)
    yield node
