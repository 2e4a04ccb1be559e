"""Taking groups apart: composition series, solvability, and the embedding of an extension into a wreath product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from sandlab.errors import BadInput
from sandlab.worlds.algebra.groups import FiniteGroup, group_name

__all__ = ["Embedding", "Series", "composition_series", "is_solvable", "universal_embedding"]


@dataclass(frozen=True, eq=False)
class Series:
    """G = H_ℓ ▷ … ▷ H_0 = 1, each a maximal normal subgroup of the one before.

    members[i]  elements of G in the i-th subgroup (the first is G itself, the last the identity alone)
    factors[i]  the simple quotient members[i] / members[i + 1]
    """

    group: FiniteGroup
    members: tuple[Int[np.ndarray, "member"], ...]
    factors: tuple[FiniteGroup, ...]

    @property
    def orders(self) -> tuple[int, ...]:
        """Orders of the factors, from the top."""
        return tuple(len(factor) for factor in self.factors)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(group_name(factor) for factor in self.factors)

    @property
    def solvable(self) -> bool:
        """All factors are cyclic of prime order; a simple group that is abelian is."""
        return all(factor.is_abelian for factor in self.factors)


def composition_series(group: FiniteGroup) -> Series:
    """A composition series from the top down; by Jordan–Hölder its factors do not depend on the choices made."""
    members, factors = [np.arange(len(group))], []
    while len(members[-1]) > 1:
        current, numbers = group.subgroup(_mask(len(group), members[-1]))
        normal = maximal_normal_subgroup(current)
        quotient, _ = current.quotient(normal)
        factors.append(quotient)
        members.append(numbers[normal])
    return Series(group, tuple(members), tuple(factors))


def maximal_normal_subgroup(group: FiniteGroup) -> Bool[np.ndarray, "element"]:
    """A proper normal subgroup that no other contains.

    Above the derived subgroup every subgroup is normal, so it is grown by single elements while it stays proper; when
    the group is perfect, normal closures are grown instead.
    """
    perfect = bool(group.derived.all())
    inside = group.generate([]) if perfect else group.derived
    for element in range(len(group)):
        if inside[element]:
            continue
        generators = np.append(np.flatnonzero(inside), element)
        grown = group.normal_closure(generators) if perfect else group.generate(generators)
        if not grown.all():
            inside = grown
    return inside


def is_solvable(group: FiniteGroup) -> bool:
    """Derived subgroups reach the identity."""
    while len(group) > 1:
        if group.derived.all():
            return False
        group, _ = group.subgroup(group.derived)
    return True


@dataclass(frozen=True, eq=False)
class Embedding:
    """G inside N ≀ (G/N): element g is the pair (functions[g], coset[g]).

    functions[g, x]   f_g(x) = s(x)·g·s(x·h)⁻¹, an element of N (numbered as in G), h the coset of g
    transversal[x]    s(x), one element of each coset, s(N) = e
    """

    group: FiniteGroup
    quotient: FiniteGroup
    coset: Int[np.ndarray, "element"]
    transversal: Int[np.ndarray, "coset"]
    functions: Int[np.ndarray, "element coset"]

    def inverse(self, value_at_identity: int, coset: int) -> int:
        """g = f(e)·s(h)."""
        return int(self.group.products[value_at_identity, self.transversal[coset]])


def universal_embedding(group: FiniteGroup, normal: Bool[np.ndarray, "element"]) -> Embedding:
    """Krasner & Kaloujnine 1951: every extension of N by H = G/N lies in the wreath product N ≀ H.

    g ↦ (x ↦ s(x)·g·s(xh)⁻¹, h) is an injective homomorphism for any choice of representatives s with s(e) = e.
    """
    quotient, coset = group.quotient(np.asarray(normal))
    transversal = np.array([int((coset == number).argmax()) for number in range(len(quotient))])
    if transversal[0] != 0:
        raise BadInput("the identity must be element 0 of the group")
    moved = quotient.products[np.arange(len(quotient))[None], coset[:, None]]
    left = group.products[transversal[None], np.arange(len(group))[:, None]]
    functions = group.products[left, group.inverses[transversal[moved]]]
    return Embedding(group, quotient, coset, transversal, functions)


def _mask(size: int, members: np.ndarray) -> Bool[np.ndarray, "element"]:
    inside = np.zeros(size, dtype=bool)
    inside[members] = True
    return inside
