"""Finite group actions: tables, fibres, stabilisers, and what makes an action simply transitive."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import networkx
import numpy as np
from jaxtyping import Int

from sandlab.errors import BadInput, integer, require
from sandlab.worlds.automata.algebra.groups import FiniteGroup
from sandlab.worlds.automata.algebra.series import is_solvable

__all__ = [
    "MATCHED_PAIRS",
    "GroupAction",
    "as_action",
    "coset_action",
    "cyclic_action",
    "named_action",
    "regular_action",
    "symmetric_action",
    "table_action",
]

MATCHED_PAIRS = (("C5", "S5"), ("C6", "S3 regular"), ("S3 regular", "S3"))
"""Equal distractor rate (1/5 and 1/6), and one group with two actions."""


@dataclass(frozen=True)
class GroupAction:
    """A group G that acts on values Y: table[g][y] = g·y, products[g][h] = g∘h, the right factor first.

    `products` may be left out where different elements move the values differently.

    Source: Huang et al. 2025, section 1.1, Definition C.1.
    """

    table: tuple[tuple[int, ...], ...]
    products: tuple[tuple[int, ...], ...] | None = None
    name: str = "custom"

    def __post_init__(self) -> None:
        array = np.array(self.table)
        fits = array.ndim == 2 and array.size > 0 and bool((np.sort(array, 1) == np.arange(array.shape[-1])).all())
        require(fits, "table", self.table, "one permutation of the values per group element")
        table, values = self.array, np.arange(self.values)
        composed = table[:, table].transpose(0, 1, 2)  # [g, h, y] = g·(h·y)
        right = composed.shape == (len(table), len(table), len(values)) and bool(
            (table[self.group.products] == composed).all()
        )
        require(right, "products", "a table", "the composition of the action: (g∘h)·y = g·(h·y)")

    @cached_property
    def array(self) -> Int[np.ndarray, "element value"]:
        return np.array(self.table, dtype=np.int64)

    @cached_property
    def group(self) -> FiniteGroup:
        """The group as a multiplication table."""
        if self.products is not None:
            return FiniteGroup(np.array(self.products, dtype=np.int64))
        numbers = {row: index for index, row in enumerate(self.table)}
        require(len(numbers) == len(self.table), "table", self.name, "faithful, or given with its products")
        rows = self.array
        try:
            found = [[numbers[tuple(g[h].tolist())] for h in rows] for g in rows]
        except KeyError:
            raise BadInput(f"the table of {self.name} is not closed under composition: give every element") from None
        return FiniteGroup(np.array(found))

    @property
    def elements(self) -> int:
        """|G|"""
        return len(self.table)

    @property
    def values(self) -> int:
        """|Y|"""
        return len(self.table[0])

    @cached_property
    def identity(self) -> int:
        products = self.group.products
        return int(np.flatnonzero((products == np.arange(self.elements)).all(1))[0])

    def compose(self, first: int, second: int) -> int:
        """first∘second: (g∘h)·y = g·(h·y)."""
        return int(self.group.products[first, second])

    def inverse(self, element: int) -> int:
        return int(np.flatnonzero(self.group.products[element] == self.identity)[0])

    def stabiliser(self, value: int) -> list[int]:
        """{g : g·y = y}."""
        return self.fiber(value, value)

    def fiber(self, target: int, value: int) -> list[int]:
        """{g : g·y = j}; of size |G|/|Y| for every pair of a transitive action (Fact C.1)."""
        return [int(element) for element in np.flatnonzero(self.array[:, value] == target)]

    @cached_property
    def fibers(self) -> Int[np.ndarray, "target value"]:
        """Number of elements that take each value to each target."""
        counts = np.zeros((self.values, self.values), dtype=np.int64)
        np.add.at(counts, (self.array, np.arange(self.values)), 1)
        return counts

    @property
    def is_transitive(self) -> bool:
        """Every value can be taken to every other."""
        return bool((self.fibers > 0).all())

    @property
    def is_free(self) -> bool:
        """Only the identity fixes a value."""
        return bool((np.diag(self.fibers) == 1).all())

    @property
    def is_simply_transitive(self) -> bool:
        """Exactly one element takes any value to any other."""
        return bool((self.fibers == 1).all())

    @property
    def is_solvable(self) -> bool:
        """Whether the derived series of G ends at the identity; the word problem is NC¹-complete where it does not."""
        return is_solvable(self._ordered)

    @property
    def distractor_rate(self) -> float:
        """Probability that another random element takes a random value where the right one does; 1/|Y| if transitive.

        Σ_j (|fiber(j, y)|/|G|)², averaged over y.
        """
        return float(((self.fibers / self.elements) ** 2).sum(0).mean())

    @property
    def imbalance(self) -> float:
        """C_α = (1 + |G| − f)/(f + |Y| − 1) with f = |G|/|Y|: the ratio V(g)/V(y) that gradient descent selects."""
        fiber = self.elements / self.values
        return (1 + self.elements - fiber) / (fiber + self.values - 1)

    def transition_graph(self, elements: Sequence[int] | None = None) -> networkx.MultiDiGraph:
        """Values as nodes, an edge y → g·y for each (given) element: a Cayley graph when the action is regular."""
        graph = networkx.MultiDiGraph()
        graph.add_nodes_from(range(self.values))
        for element in range(self.elements) if elements is None else elements:
            graph.add_edges_from((y, int(j), {"element": element}) for y, j in enumerate(self.array[element]))
        return graph

    @cached_property
    def _ordered(self) -> FiniteGroup:
        """The group with the identity as element 0."""
        order = np.concatenate([[self.identity], np.delete(np.arange(self.elements), self.identity)])
        return FiniteGroup(np.argsort(order)[self.group.products[np.ix_(order, order)]])


def cyclic_action(size: int) -> GroupAction:
    """C_n on Z_n by addition: simply transitive."""
    integer("size", size, low=1)
    return _action(FiniteGroup.cyclic(size).products, FiniteGroup.cyclic(size).products, f"C{size}")


def symmetric_action(points: int) -> GroupAction:
    """All permutations of n points: |fiber| = (n − 1)!."""
    integer("points", points, low=1, high=6)
    return GroupAction(tuple(itertools.permutations(range(points))), name=f"S{points}")


def regular_action(group: GroupAction | FiniteGroup, name: str = "") -> GroupAction:
    """A group acting on itself, g·h = g∘h: the general simply transitive action."""
    title = name or (f"{group.name} regular" if isinstance(group, GroupAction) else "regular")
    products = (group.group if isinstance(group, GroupAction) else group).products
    return _action(products, products, title)


def coset_action(group: GroupAction | FiniteGroup, subgroup: Sequence[int], name: str = "") -> GroupAction:
    """G on the left cosets G/H: regular for H = {e}, the natural action for H a stabiliser of it."""
    products = (group.group if isinstance(group, GroupAction) else group).products
    inside = np.array(sorted(subgroup))
    require(
        bool(np.isin(products[np.ix_(inside, inside)], inside).all()), "subgroup", subgroup, "closed under products"
    )
    cosets = np.sort(products[:, inside], axis=1)
    kinds, number = np.unique(cosets, axis=0, return_inverse=True)
    representative = np.array([int(np.flatnonzero(number == kind)[0]) for kind in range(len(kinds))])
    return _action(number[products[:, representative]], products, name or f"cosets of {len(inside)}")


def table_action(table: Sequence[Sequence[int]], name: str = "custom") -> GroupAction:
    """An action of one's own: one permutation of the values per element, closed under composition."""
    return GroupAction(tuple(tuple(int(value) for value in row) for row in table), name=name)


@cache
def named_action(name: str) -> GroupAction:
    """ "C6", "S5", "S3 regular", or "S4 on 2-tuples" (cosets of the stabiliser of two points)."""
    if found := re.fullmatch(r"([CS])(\d+)( regular)?", name):
        kind, size, regular = found.groups()
        action = cyclic_action(int(size)) if kind == "C" else symmetric_action(int(size))
        return regular_action(action) if regular else action
    if found := re.fullmatch(r"S(\d+) on (\d+)-tuples", name):
        natural = symmetric_action(int(found[1]))
        fixed = [g for g, row in enumerate(natural.table) if row[: int(found[2])] == tuple(range(int(found[2])))]
        return coset_action(natural, fixed, name)
    raise BadInput(f"no action called {name!r}: try 'C6', 'S5', 'S3 regular' or 'S4 on 2-tuples'")


def as_action(given: str | GroupAction) -> GroupAction:
    """The action of that name, or the given one."""
    return named_action(given) if isinstance(given, str) else given


def _action(table: np.ndarray, products: np.ndarray, name: str) -> GroupAction:
    rows, product = (tuple(tuple(map(int, row)) for row in each) for each in (table, products))
    return GroupAction(rows, product, name)
