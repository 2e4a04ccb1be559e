"""Finite groups as multiplication tables, and the ways to put groups together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from sandlab.errors import BadInput, integer
from sandlab.worlds.automata.algebra.semigroups import enumerate_semigroup

__all__ = ["FiniteGroup", "group_name"]

LARGEST = 20_000


@dataclass(frozen=True, eq=False)
class FiniteGroup:
    """products[a, b] = a·b; element 0 is the identity.

    Permutations multiply as functions: (a·b)(x) = a(b(x)), the right factor acts first. `permutations` keeps them when
    the group was made from some.
    """

    products: Int[np.ndarray, "element element"]
    permutations: Int[np.ndarray, "element point"] | None = None

    def __len__(self) -> int:
        return len(self.products)

    @staticmethod
    def cyclic(order: int) -> FiniteGroup:
        """Z_n: addition modulo n."""
        integer("order", order, 1)
        numbers = np.arange(order)
        return FiniteGroup((numbers[:, None] + numbers) % order)

    @staticmethod
    def generated(permutations: Sequence[Sequence[int]] | np.ndarray, limit: int = LARGEST) -> FiniteGroup:
        """The group that the given permutations of points generate."""
        rows = np.array(permutations)
        if rows.ndim != 2 or not (np.sort(rows, 1) == np.arange(rows.shape[-1])).all():
            raise BadInput(f"generators must be permutations of 0 … n−1, got {permutations!r}")
        closure = enumerate_semigroup(rows, limit)
        # The identity moves to the front; a·b is "first b, then a".
        order = np.concatenate([[closure.identity], np.delete(np.arange(len(closure)), closure.identity)])
        place = np.argsort(order)
        return FiniteGroup(place[closure.products[np.ix_(order, order)]].T.copy(), closure.maps[order].astype(np.int64))

    @staticmethod
    def direct(first: FiniteGroup, second: FiniteGroup) -> FiniteGroup:
        """(g, h)(g′, h′) = (gg′, hh′); element (g, h) is number g·|H| + h."""
        trivial = np.tile(np.arange(len(first)), (len(second), 1))
        return FiniteGroup.semidirect(first, second, trivial)

    @staticmethod
    def semidirect(normal: FiniteGroup, acting: FiniteGroup, action: Int[np.ndarray, "acting normal"]) -> FiniteGroup:
        """N ⋊ H: (g, h)(g′, h′) = (g·φ_h(g′), hh′), with φ_h(g) = action[h, g]; (g, h) is number g·|H| + h."""
        action = np.asarray(action)
        _check_action(normal, acting, action)
        size = len(acting)
        g, h = np.divmod(np.arange(len(normal) * size), size)
        left = normal.products[g[:, None], action[h[:, None], g[None]]]
        return FiniteGroup(left * size + acting.products[h[:, None], h[None]])

    @staticmethod
    def wreath(base: FiniteGroup, acting: FiniteGroup) -> FiniteGroup:
        """Regular wreath product N ≀ H: pairs (f, h), f: H → N, with (f, h)(f′, h′) = (f·φ_h(f′), hh′).

        φ_h(f)(x) = f(xh), products of functions point by point; order |N|^|H|·|H|. f is numbered in base |N|, its
        value at the identity first.
        """
        size = len(base) ** len(acting)
        if size * len(acting) > LARGEST:
            raise BadInput(f"the wreath product has {size * len(acting)} elements: at most {LARGEST}")
        functions = np.stack(np.unravel_index(np.arange(size), [len(base)] * len(acting)), -1)
        weights = len(base) ** np.arange(len(acting))[::-1]
        power = FiniteGroup(base.products[functions[:, None], functions[None]] @ weights)
        action = np.stack([functions[:, acting.products[:, h]] @ weights for h in range(len(acting))])
        return FiniteGroup.semidirect(power, acting, action)

    @cached_property
    def inverses(self) -> Int[np.ndarray, "element"]:
        return (self.products == 0).argmax(1)

    @cached_property
    def orders(self) -> Int[np.ndarray, "element"]:
        """The least n ≥ 1 with gⁿ = e."""
        result = np.zeros(len(self), dtype=np.int64)
        power = np.arange(len(self))
        exponent = 1
        while (result == 0).any():
            result[(power == 0) & (result == 0)] = exponent
            power = self.products[power, np.arange(len(self))]
            exponent += 1
        return result

    @cached_property
    def is_abelian(self) -> bool:
        return bool((self.products == self.products.T).all())

    def generate(self, members: Sequence[int] | np.ndarray) -> Bool[np.ndarray, "element"]:
        """The smallest subgroup that contains the given elements, as a membership mask."""
        inside = np.zeros(len(self), dtype=bool)
        inside[0] = True
        frontier = np.array([0])
        letters = np.unique(np.asarray(members, dtype=np.int64))
        while len(frontier):
            reached = np.unique(self.products[np.ix_(frontier, letters)])
            frontier = reached[~inside[reached]]
            inside[frontier] = True
        return inside

    def normal_closure(self, members: Sequence[int] | np.ndarray) -> Bool[np.ndarray, "element"]:
        """The smallest normal subgroup that contains the given elements."""
        letters = np.asarray(members, dtype=np.int64)
        everyone = np.arange(len(self))[:, None]
        conjugates = self.products[self.products[everyone, letters], self.inverses[:, None]]
        return self.generate(np.unique(conjugates))

    @cached_property
    def derived(self) -> Bool[np.ndarray, "element"]:
        """The subgroup of commutators a·b·a⁻¹·b⁻¹."""
        left = self.products
        return self.generate(np.unique(left[left, self.inverses[left.T]]))

    def subgroup(self, inside: Bool[np.ndarray, "element"]) -> tuple[FiniteGroup, Int[np.ndarray, "member"]]:
        """A subgroup as a group of its own, and which elements its numbers stand for."""
        members = np.flatnonzero(inside)
        number = np.full(len(self), -1)
        number[members] = np.arange(len(members))
        kept = None if self.permutations is None else self.permutations[members]
        return FiniteGroup(number[self.products[np.ix_(members, members)]], kept), members

    def is_normal(self, inside: Bool[np.ndarray, "element"]) -> bool:
        members = np.flatnonzero(inside)
        conjugates = self.products[self.products[:, members], self.inverses[:, None]]
        return bool(inside[conjugates].all())

    def quotient(self, inside: Bool[np.ndarray, "element"]) -> tuple[FiniteGroup, Int[np.ndarray, "element"]]:
        """G/N and the coset number of each element; coset 0 is N."""
        if not self.is_normal(inside):
            raise BadInput("a quotient needs a normal subgroup: these elements are not closed under conjugation")
        smallest = self.products[:, np.flatnonzero(inside)].min(1)
        leaders, coset = np.unique(smallest, return_inverse=True)
        return FiniteGroup(coset[self.products[np.ix_(leaders, leaders)]]), coset


def _check_action(normal: FiniteGroup, acting: FiniteGroup, action: np.ndarray) -> None:
    """Each row an automorphism of N, and φ_{hh′} = φ_h φ_{h′}."""
    right_shape = action.shape == (len(acting), len(normal))
    if not right_shape or not (np.sort(action, 1) == np.arange(len(normal))).all():
        raise BadInput(f"action must be {len(acting)} permutations of {len(normal)} elements, one per acting element")
    respects = all((row[normal.products] == normal.products[row[:, None], row[None]]).all() for row in action)
    composes = (action[acting.products] == action[:, action]).all()
    if not respects or not composes:
        raise BadInput("action must be a homomorphism into the automorphisms of the normal factor")


def group_name(group: FiniteGroup) -> str:
    """The usual name of a small group, from its order and the orders of its elements; else "a group of order n"."""
    order = len(group)
    counts = dict(zip(*(part.tolist() for part in np.unique(group.orders, return_counts=True))))
    if order == 1:
        return "the trivial group"
    if counts.get(order):
        return f"C{order}"
    if group.is_abelian:
        return _abelian_name(group)
    known = {
        (8, 1): "Q8",
        (12, 3): "A4",
        (24, 9): "S4",
        (60, 15): "A5",
        (120, 25): "S5",
        (168, 21): "PSL(2,7)",
        (360, 45): "A6",
        (720, 75): "S6",
    }
    involutions = counts.get(2, 0)
    half = order // 2
    if order % 2 == 0 and counts.get(half) and involutions == half + (half % 2 == 0):
        return f"D{order}"
    if order % 4 == 0 and order > 8 and involutions == 1 and counts.get(half):
        return f"Dic{order // 4}"
    return known.get((order, involutions), f"a group of order {order}")


def _abelian_name(group: FiniteGroup) -> str:
    """Invariant factors: peel off the largest cyclic factor again and again."""
    factors = []
    while len(group) > 1:
        largest = int(group.orders.argmax())
        factors.append(int(group.orders[largest]))
        group, _ = group.quotient(group.generate([largest]))
    assert math.prod(factors)
    return "×".join(f"C{factor}" for factor in factors)
