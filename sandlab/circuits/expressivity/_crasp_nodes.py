"""The operations that C-RASP programs are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Letter:
    """Q_a(i): the letter here is a."""

    symbol: str


@dataclass(frozen=True)
class Truth:
    value: bool


@dataclass(frozen=True)
class Not:
    inner: Formula


@dataclass(frozen=True)
class And:
    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Count:
    """#[j ≤ i] P(j)"""

    inner: Formula


@dataclass(frozen=True)
class Choice:
    """`yes` where the condition holds, else `no`."""

    condition: Formula
    yes: Linear
    no: Linear


@dataclass(frozen=True)
class Linear:
    """Σ coefficient · term + constant."""

    terms: tuple[tuple[Count | Choice, int], ...] = ()
    constant: int = 0

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        merged = dict(self.terms)
        for term, weight in other.terms:
            merged[term] = merged.get(term, 0) + factor * weight
        kept = tuple((term, weight) for term, weight in merged.items() if weight)
        return Linear(kept, self.constant + factor * other.constant)


@dataclass(frozen=True)
class AtLeastZero:
    """The number is not negative; every comparison of whole numbers becomes one of these or two."""

    number: Linear


Formula: TypeAlias = "Letter | Truth | Not | And | AtLeastZero"
Node: TypeAlias = "Formula | Count | Choice | Linear"


def inner_nodes(node: Node) -> tuple[Node, ...]:
    """What an operation is made of."""
    if isinstance(node, (Not, Count)):
        return (node.inner,)
    if isinstance(node, And):
        return node.parts
    if isinstance(node, AtLeastZero):
        return (node.number,)
    if isinstance(node, Choice):
        return (node.condition, node.yes, node.no)
    return tuple(term for term, _ in node.terms) if isinstance(node, Linear) else ()


def walk(node: Node) -> Iterator[Node]:
    for inner in inner_nodes(node):
        yield from walk(inner)
    yield node


def depth_of(node: Node) -> int:
    inside = max((depth_of(inner) for inner in inner_nodes(node)), default=0)
    return inside + isinstance(node, Count)
