"""Group programs: layers that turn a sequence of group elements into its running products, in constant depth.

An element is a code: whole numbers in `width` channels, the identity all zero. A program overwrites the codes of
g_1, g_2, … by those of g_1, g_2·g_1, g_3·g_2·g_1, …; at the anchor the code stays zero, so programs can be stacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
from jaxtyping import Int

from sandlab.circuits.automata.atoms import add_counter
from sandlab.circuits.builder import CircuitBuilder
from sandlab.circuits.gadgets import Network, interpolate, tabulate
from sandlab.errors import BadInput
from sandlab.worlds.automata.algebra.groups import FiniteGroup, group_name
from sandlab.worlds.automata.algebra.series import composition_series, is_solvable

__all__ = [
    "AbelianProgram",
    "DirectProgram",
    "GroupProgram",
    "SemidirectProgram",
    "WreathProgram",
    "direct_program",
    "group_program",
    "semidirect_program",
    "series_program",
    "wreath_program",
]


LEAST = 4
"""Layers of the shallowest programs of a group that is not abelian: two abelian ones and two turns."""


class GroupProgram(Protocol):
    """group: whose products are taken; codes[g]: the code of each element; depth: layers needed."""

    @property
    def group(self) -> FiniteGroup: ...

    @property
    def codes(self) -> Int[np.ndarray, "element channel"]: ...

    @property
    def depth(self) -> int: ...

    def emit(self, circuit: CircuitBuilder, layer: int, channels: Sequence[int]) -> None:
        """Write the layers from number `layer` on."""
        ...


@dataclass(frozen=True, eq=False)
class AbelianProgram:
    """Counters side by side: every abelian group is a product of cyclic ones, and needs one layer (Lemma 17)."""

    group: FiniteGroup
    sizes: tuple[int, ...]
    codes: Int[np.ndarray, "element channel"]
    depth: int = 1

    def emit(self, circuit: CircuitBuilder, layer: int, channels: Sequence[int]) -> None:
        for channel, size in zip(channels, self.sizes):
            add_counter(circuit, layer, channel, size)


@dataclass(frozen=True, eq=False)
class DirectProgram:
    """G = G_1 × G_2 × …: any programs side by side, as deep as the deepest (Lemma 17)."""

    group: FiniteGroup
    factors: tuple[GroupProgram, ...]
    codes: Int[np.ndarray, "element channel"]

    @property
    def depth(self) -> int:
        return max(factor.depth for factor in self.factors)

    def emit(self, circuit: CircuitBuilder, layer: int, channels: Sequence[int]) -> None:
        first = 0
        for factor in self.factors:
            width = factor.codes.shape[1]
            factor.emit(circuit, layer, channels[first : first + width])
            first += width


@dataclass(frozen=True, eq=False)
class SemidirectProgram:
    """G = N ⋊ H: run H, undo its action, run N, redo it (Lemma 18).

    φ⁻¹_{h≤t}(g_≤t) = φ⁻¹_{h≤t}(g_t) ⋯ φ⁻¹_{h≤1}(g_1), so after the letters of N are turned back by the running product
    of H they multiply as in N alone. Depth L_H + L_N + 2.
    """

    group: FiniteGroup
    normal: GroupProgram
    acting: GroupProgram
    action: Int[np.ndarray, "acting normal"]
    codes: Int[np.ndarray, "element channel"]

    @property
    def depth(self) -> int:
        return self.normal.depth + self.acting.depth + 2

    def emit(self, circuit: CircuitBuilder, layer: int, channels: Sequence[int]) -> None:
        inner, outer = channels[: self.normal.codes.shape[1]], channels[self.normal.codes.shape[1] :]
        self.acting.emit(circuit, layer, outer)
        layer += self.acting.depth
        undo = np.argsort(self.action, 1)
        circuit.layer(layer).feed(self._turn(undo), channels, inner)
        self.normal.emit(circuit, layer + 1, inner)
        circuit.layer(layer + 1 + self.normal.depth).feed(self._turn(self.action), channels, inner)

    def _turn(self, action: np.ndarray) -> Network:
        """(g, h) ↦ φ_h(g) on codes."""
        h, g = np.divmod(np.arange(action.size), action.shape[1])
        points = np.concatenate([self.normal.codes[g], self.acting.codes[h]], 1)
        return tabulate(points, self.normal.codes[action[h, g]])


@dataclass(frozen=True, eq=False)
class WreathProgram:
    """The wreath product N ≀ C_p, or a group G that lies in it (Lemma 19, Theorem 16).

    Code of (f, h): h, then the codes of f(x) ∈ N for x = 0 … p−1. An element g of a group with normal subgroup N has
    its coset as h and f_g(x) = s(x)·g·s(x+h)⁻¹ (universal embedding). A counter gives the running H; the p blocks
    are shifted, b(x) = f(x − H); N runs in p copies; the blocks are shifted back. Depth L_N + 3.
    """

    group: FiniteGroup
    index: int
    normal: GroupProgram
    codes: Int[np.ndarray, "element channel"]

    @property
    def depth(self) -> int:
        return self.normal.depth + 3

    def emit(self, circuit: CircuitBuilder, layer: int, channels: Sequence[int]) -> None:
        size = self.normal.codes.shape[1]
        blocks = [channels[1 + size * x : 1 + size * (x + 1)] for x in range(self.index)]
        add_counter(circuit, layer, channels[0], self.index)
        circuit.layer(layer + 1).feed(self._shift(-1), channels, channels[1:])
        for block in blocks:
            self.normal.emit(circuit, layer + 2, block)
        circuit.layer(layer + 2 + self.normal.depth).feed(self._shift(1), channels, channels[1:])

    def _shift(self, direction: int) -> Network:
        """(H, blocks) ↦ blocks with x replaced by x ± H: a choice among p wirings, as in `compose_functions`."""
        index, size = self.index, self.normal.codes.shape[1]
        total, largest = index * size, max(1.0, float(self.normal.codes.max()))
        marks = interpolate(np.arange(index), np.eye(index))
        first = np.zeros((4 * index + total, 1 + total))
        first[: 4 * index, :1] = marks.weights[0]
        first[4 * index :, 1:] = np.eye(total)
        bias = np.concatenate([marks.biases[0], np.zeros(total)])
        second = np.zeros((index * total, len(first)))
        last = np.zeros((total, index * total))
        for shift in range(index):
            rows = slice(shift * total, (shift + 1) * total)
            second[rows, : 4 * index] = largest * marks.weights[1][shift]
            source = (np.arange(index) + direction * shift) % index
            columns = (source[:, None] * size + np.arange(size)).reshape(-1)
            second[np.arange(rows.start, rows.stop), 4 * index + columns] = 1
            last[:, rows] = np.eye(total)
        return Network([first, second, last], [bias, np.full(index * total, -largest)])


def series_program(group: FiniteGroup) -> WreathProgram | AbelianProgram:
    """Any solvable group by its composition series alone: depth 3ℓ − 2 for ℓ factors (Theorem 16)."""
    _require_solvable(group)
    return _by_series(group)


def wreath_program(base: FiniteGroup, acting: int | FiniteGroup) -> WreathProgram | SemidirectProgram:
    """All of N ≀ H, elements numbered as by `FiniteGroup.wreath`; the group acts on itself from the left.

    acting   H, or its order where it is cyclic: then a counter runs it and the blocks are shifted by its count. Any
             other group turns the blocks as in a semidirect product, by a table over all elements of N ≀ H
    """
    turning = FiniteGroup.cyclic(acting) if isinstance(acting, int) else acting
    whole, inner, size = FiniteGroup.wreath(base, turning), group_program(base), len(turning)
    regular = FiniteGroup(whole.products, whole.products)
    functions, h = np.divmod(np.arange(len(whole)), size)
    values = np.stack(np.unravel_index(functions, [len(base)] * size), -1)
    blocks = inner.codes[values].reshape(len(whole), -1)
    if isinstance(acting, int):
        return WreathProgram(regular, acting, inner, np.concatenate([h[:, None], blocks], 1))
    outer, one_each = group_program(turning), np.arange(0, len(whole), size)
    weights = len(base) ** np.arange(size)[::-1]
    action = np.stack([values[one_each][:, turning.products[:, element]] @ weights for element in range(size)])
    power, _ = whole.subgroup(np.arange(len(whole)) % size == 0)
    copies = DirectProgram(power, (inner,) * size, blocks[one_each])
    return SemidirectProgram(regular, copies, outer, action, np.concatenate([blocks, outer.codes[h]], 1))


def direct_program(group: FiniteGroup) -> DirectProgram | AbelianProgram:
    """The shallowest splitting G = G_1 × G_2 (abelian groups: counters); a group that does not split is refused."""
    _require_solvable(group)
    if group.is_abelian:
        return _abelian(group)
    made = [_direct(group, *pair) for pair in _direct_splits(group, _normal_subgroups(group))]
    if not made:
        raise BadInput(
            f"{group_name(group)} is no direct product of smaller groups: take the semidirect or the "
            "solvable-group circuit"
        )
    return min(made, key=lambda program: program.depth)


def semidirect_program(group: FiniteGroup) -> SemidirectProgram:
    """The shallowest splitting G = N ⋊ H; a group that does not split is refused."""
    _require_solvable(group)
    best: SemidirectProgram | None = None
    for pair in _splits(group, _normal_subgroups(group)):
        made = _semidirect(group, *pair)
        best = made if best is None or made.depth < best.depth else best
        if best.depth <= LEAST:
            break
    if best is None:
        raise BadInput(
            f"{group_name(group)} is no semidirect product of smaller groups: take the solvable-group circuit"
        )
    return best


def group_program(group: FiniteGroup) -> GroupProgram:
    """The shallowest program known here: abelian groups in one layer, semidirect products, else the series."""
    _require_solvable(group)
    return _shallowest(group)


def _require_solvable(group: FiniteGroup) -> None:
    if not is_solvable(group):
        simple = next(factor for factor in composition_series(group).factors if not factor.is_abelian)
        raise BadInput(
            f"no circuit of constant depth is known for {group_name(group)} (order {len(group)}): it is not solvable, "
            f"a composition factor is {group_name(simple)} (order {len(simple)}); take method 'scan'"
        )


def _by_series(group: FiniteGroup) -> WreathProgram | AbelianProgram:
    members = composition_series(group).members
    if len(members) <= 2:
        return _abelian(group)
    normal, numbers = group.subgroup(np.isin(np.arange(len(group)), members[1]))
    return _extension(group, numbers, _by_series(normal))


def _extension(group: FiniteGroup, numbers: np.ndarray, inner: GroupProgram) -> WreathProgram:
    """Codes of the universal embedding for a normal subgroup (given by its elements) of prime index."""
    index = len(group) // len(numbers)
    outside = next(element for element in range(len(group)) if element not in set(numbers.tolist()))
    powers = [0]
    for _ in range(index - 1):
        powers.append(int(group.products[powers[-1], outside]))
    transversal = np.array(powers)
    coset = np.empty(len(group), dtype=np.int64)
    for x, element in enumerate(transversal):
        coset[group.products[numbers, element]] = x
    inner_index = np.full(len(group), -1)
    inner_index[numbers] = np.arange(len(numbers))
    blocks = []
    for x in range(index):
        left = group.products[transversal[x]]
        f = group.products[left, group.inverses[transversal[(x + coset) % index]]]
        blocks.append(inner.codes[inner_index[f]])
    codes = np.concatenate([coset[:, None], *blocks], 1)
    return WreathProgram(group, index, inner, codes)


def _abelian(group: FiniteGroup) -> AbelianProgram:
    """A basis: an element of the largest order spans a factor, a complement to it holds the rest."""
    inside = np.ones(len(group), dtype=bool)
    basis: list[int] = []
    while inside.sum() > 1:
        members = np.flatnonzero(inside)
        element = int(members[group.orders[members].argmax()])
        basis.append(element)
        inside = _complement(group, inside, group.generate([element]))
    sizes = tuple(int(group.orders[element]) for element in basis) or (1,)
    codes = np.zeros((len(group), len(sizes)), dtype=np.int64)
    for exponents in np.ndindex(*sizes):
        product = 0
        for element, exponent in zip(basis, exponents):
            for _ in range(exponent):
                product = int(group.products[product, element])
        codes[product] = exponents
    return AbelianProgram(group, sizes, codes)


def _complement(group: FiniteGroup, inside: np.ndarray, spanned: np.ndarray) -> np.ndarray:
    """A largest subgroup of an abelian group that meets the spanned one in the identity only: grown greedily."""
    result = group.generate([])
    for element in np.flatnonzero(inside):
        grown = group.generate(np.append(np.flatnonzero(result), element))
        if (grown & spanned).sum() == 1:
            result = grown
    return result


def _shallowest(group: FiniteGroup) -> GroupProgram:
    if group.is_abelian:
        return _abelian(group)
    table = np.ascontiguousarray(group.products, dtype=np.int64)
    found: GroupProgram = replace(_shallowest_of(table.tobytes(), len(group)), group=group)  # type: ignore[type-var]
    return found


@lru_cache(maxsize=4096)
def _shallowest_of(table: bytes, order: int) -> GroupProgram:
    """The shallowest program of a group that is not abelian, by its multiplication table."""
    group = FiniteGroup(np.frombuffer(table, dtype=np.int64).reshape(order, order))
    best: GroupProgram = _by_series_of_best(group)
    if best.depth <= LEAST:
        return best
    normals = _normal_subgroups(group)
    for pair in _direct_splits(group, normals):
        best = min(best, _direct(group, *pair), key=lambda program: program.depth)
    for pair in _splits(group, normals):
        if best.depth <= LEAST:
            break
        best = min(best, _semidirect(group, *pair), key=lambda program: program.depth)
    return best


def _by_series_of_best(group: FiniteGroup) -> GroupProgram:
    members = composition_series(group).members
    normal, numbers = group.subgroup(np.isin(np.arange(len(group)), members[1]))
    return _extension(group, numbers, _shallowest(normal))


def _normal_subgroups(group: FiniteGroup, most: int = 500) -> list[np.ndarray]:
    """Normal subgroups but the trivial and the whole one, as masks: what single elements generate, and joins of these.

    Groups of order 200 rarely have more than `most`; the search ends there.
    """
    rest, closures = np.ones(len(group), dtype=bool), {}
    rest[0] = False
    while rest.any():
        element = int(rest.argmax())
        mask = group.normal_closure([element])
        rest[group.products[group.products[:, element], group.inverses]] = False
        closures[mask.tobytes()] = mask
    found, fresh = dict(closures), list(closures.values())
    while fresh and len(found) < most:
        joins = {
            mask.tobytes(): mask
            for first in fresh
            for second in closures.values()
            for mask in [group.generate(np.flatnonzero(first | second))]
        }
        fresh = [mask for key, mask in joins.items() if key not in found]
        found |= joins
    return [mask for mask in found.values() if not mask.all()]


def _direct_splits(group: FiniteGroup, normals: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of normal subgroups whose direct product is the group, the larger one first."""
    return [
        (first, second)
        for first in normals
        for second in normals
        if first.sum() >= second.sum() and first.sum() * second.sum() == len(group) and (first & second).sum() == 1
    ]


def _splits(group: FiniteGroup, normals: list[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs (N, H): N normal, H a complement (all complements of N are isomorphic to G/N: one of them is enough)."""
    for normal in normals:
        acting = _complement_of_normal(group, normal)
        if acting is not None:
            yield normal, acting


def _complement_of_normal(group: FiniteGroup, normal: np.ndarray) -> np.ndarray | None:
    """A subgroup that has one element in every coset of N: elements over generators of G/N, chosen one by one.

    A choice stands as long as what is chosen generates no more elements than its image in G/N.
    """
    quotient, coset = group.quotient(normal)
    generators: list[int] = []
    sizes: list[int] = []
    while not sizes or sizes[-1] < len(quotient):
        reached = [int(quotient.generate([*generators, element]).sum()) for element in range(len(quotient))]
        generators.append(int(np.argmax(reached)))
        sizes.append(max(reached))

    def extend(chosen: list[int]) -> np.ndarray | None:
        if len(chosen) == len(generators):
            return group.generate(chosen)
        for element in np.flatnonzero(coset == generators[len(chosen)]).tolist():
            if group.generate([*chosen, element]).sum() == sizes[len(chosen)]:
                found = extend([*chosen, element])
                if found is not None:
                    return found
        return None

    return extend([])


def _direct(group: FiniteGroup, first: np.ndarray, second: np.ndarray) -> DirectProgram:
    """Codes of G = G_1 × G_2 inside G, for two normal subgroups given as masks."""
    (one, left), (other, right) = group.subgroup(first), group.subgroup(second)
    programs = _shallowest(one), _shallowest(other)
    codes = np.empty((len(group), sum(program.codes.shape[1] for program in programs)), dtype=np.int64)
    g, h = np.divmod(np.arange(len(group)), len(right))
    codes[group.products[left[g], right[h]]] = np.concatenate([programs[0].codes[g], programs[1].codes[h]], 1)
    return DirectProgram(group, programs, codes)


def _semidirect(group: FiniteGroup, inner: np.ndarray, outer: np.ndarray) -> SemidirectProgram:
    """Codes and action of G = N ⋊ H inside G, for masks of N and H: g = n·h, φ_h(n) = h·n·h⁻¹."""
    (normal_group, normal), (acting_group, acting) = group.subgroup(inner), group.subgroup(outer)
    first, second = _shallowest(normal_group), _shallowest(acting_group)
    number = np.full(len(group), -1)
    number[normal] = np.arange(len(normal))
    conjugated = group.products[group.products[acting[:, None], normal], group.inverses[acting][:, None]]
    codes = np.empty((len(group), first.codes.shape[1] + second.codes.shape[1]), dtype=np.int64)
    for n, element in enumerate(normal):
        products = group.products[element, acting]
        codes[products] = np.concatenate([np.tile(first.codes[n], (len(acting), 1)), second.codes], 1)
    return SemidirectProgram(group, first, second, number[conjugated], codes)
