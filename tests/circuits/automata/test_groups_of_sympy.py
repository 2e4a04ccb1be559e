"""Group circuits on the groups that sympy builds: sympy multiplies the permutations, the circuit must agree."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from simulation import errors, random_words
from sympy.combinatorics import AbelianGroup, AlternatingGroup, CyclicGroup, DihedralGroup, PermutationGroup
from sympy.combinatorics import SymmetricGroup as Symmetric
from sympy.combinatorics.group_constructs import DirectProduct

import sandlab as sl
from sandlab.circuits import group_circuit

MOST = 60


def partitions(exponent: int, largest: int) -> list[tuple[int, ...]]:
    if exponent == 0:
        return [()]
    return [
        (part, *rest) for part in range(min(exponent, largest), 0, -1) for rest in partitions(exponent - part, part)
    ]


def prime_powers(order: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for prime in range(2, order + 1):
        while order % prime == 0:
            found[prime] = found.get(prime, 0) + 1
            order //= prime
    return found


def abelian() -> dict[str, PermutationGroup]:
    """Every abelian group of at most sixty elements: a partition of the exponent of each prime."""
    found = {}
    for order in range(2, MOST + 1):
        choices = [[(p, part) for part in partitions(e, e)] for p, e in prime_powers(order).items()]
        for chosen in itertools.product(*choices):
            sizes = [prime**exponent for prime, part in chosen for exponent in part]
            found["C" + "xC".join(map(str, sizes))] = AbelianGroup(*sizes)
    return found


def others() -> dict[str, PermutationGroup]:
    """Dihedral, symmetric and alternating groups, and their products with one another and with cyclic groups."""
    plain = {f"D{2 * n}": DihedralGroup(n) for n in range(3, MOST // 2 + 1)}
    plain |= {"S4": Symmetric(4), "A4": AlternatingGroup(4), "A5": AlternatingGroup(5)}
    cyclic = {f"C{n}": CyclicGroup(n) for n in range(2, 11)}
    products = {
        f"{a}x{b}": DirectProduct(plain[a], {**plain, **cyclic}[b])
        for a in plain
        for b in (*plain, *cyclic)
        if plain[a].order() * {**plain, **cyclic}[b].order() <= MOST and (b in cyclic or a <= b)
    }
    return {**plain, **products}


def agrees(group: PermutationGroup, length: int = 8) -> bool:
    """Whether the circuit of the regular machine computes sympy's products; refused exactly when not solvable."""
    elements = list(group.elements)
    number = {tuple(each.array_form): index for index, each in enumerate(elements)}
    products = np.array([[number[tuple((b * a).array_form)] for b in elements] for a in elements])
    machine = sl.worlds.canonical(products)
    if not group.is_solvable:
        with pytest.raises(sl.BadInput, match="solvable"):
            group_circuit(machine, length)
        return True
    words = random_words(len(elements), length, 12, len(elements))
    return errors(group_circuit(machine, length), machine, words) == 0


def test_there_are_as_many_abelian_groups_as_known() -> None:
    orders = [int(group.order()) for group in abelian().values()]
    assert [orders.count(n) for n in (8, 16, 32, 36, 48, 60)] == [3, 5, 7, 4, 5, 2]
    assert all(math.prod(map(int, name[1:].split("xC"))) == n for name, n in zip(abelian(), orders))


@pytest.mark.parametrize("name", ["C4xC2", "C3xC3", "C4xC3", "D14", "D24", "S4", "A4", "A5", "D6xD6", "A4xC2"])
def test_circuits_agree_with_sympy(name: str) -> None:
    assert agrees({**abelian(), **others()}[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*abelian(), *others()])
def test_circuits_agree_with_sympy_on_every_group_it_builds_up_to_sixty_elements(name: str) -> None:
    assert agrees({**abelian(), **others()}[name])
