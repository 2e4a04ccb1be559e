import itertools

import numpy as np
import pytest
from sympy.combinatorics import Permutation, PermutationGroup
from sympy.combinatorics.named_groups import AlternatingGroup, DihedralGroup, SymmetricGroup

import sandlab as sl
from sandlab.worlds import FiniteGroup, composition_series, group_name, is_solvable, universal_embedding


def group_of(name):
    return FiniteGroup.generated(sl.worlds.named_machine(name).maps)


def is_group(table):
    size = len(table)
    associative = (table[table] == table[:, table]).all() if size <= 64 else True
    latin = (np.sort(table, 0) == np.arange(size)[:, None]).all() and (np.sort(table, 1) == np.arange(size)).all()
    return associative and latin and (table[0] == np.arange(size)).all()


@pytest.mark.parametrize(
    ("ours", "theirs"), [("S4", SymmetricGroup(4)), ("A5", AlternatingGroup(5)), ("D8", DihedralGroup(4))]
)
def test_generated_groups_agree_with_sympy(ours, theirs):
    group = group_of(ours)
    assert len(group) == theirs.order()
    assert group.is_abelian == theirs.is_abelian and is_solvable(group) == theirs.is_solvable
    assert int(group.derived.sum()) == theirs.derived_subgroup().order()
    counts = sorted(group.orders.tolist())
    assert counts == sorted(element.order() for element in theirs.elements)


def test_permutations_multiply_from_the_right():
    group = FiniteGroup.generated([[1, 2, 0], [1, 0, 2]])
    for a, b in itertools.product(range(6), repeat=2):
        product = group.permutations[a][group.permutations[b]]
        assert (group.permutations[group.products[a, b]] == product).all()


FACTORS = {
    "C6": [2, 3],
    "Q8": [2, 2, 2],
    "D8": [2, 2, 2],
    "A4": [2, 2, 3],
    "S4": [2, 2, 2, 3],
    "D6": [2, 3],
    "A5": [60],
    "S5": [2, 60],
}


@pytest.mark.parametrize(("name", "orders"), FACTORS.items())
def test_composition_factors_are_the_known_ones(name, orders):
    series = composition_series(group_of(name))
    assert sorted(series.orders) == orders
    assert series.solvable == (name not in ("A5", "S5")) == is_solvable(series.group)
    for above, below, factor in zip(series.members, series.members[1:], series.factors):
        inside = np.isin(np.arange(len(series.group)), above)
        sub, numbers = series.group.subgroup(inside)
        assert sub.is_normal(np.isin(numbers, below)) and len(above) == len(below) * len(factor)


def test_series_orders_agree_with_sympy():
    for ours, theirs in [("S4", SymmetricGroup(4)), ("D8", DihedralGroup(4))]:
        chain = [subgroup.order() for subgroup in theirs.composition_series()]
        expected = sorted(a // b for a, b in itertools.pairwise(chain))
        assert sorted(composition_series(group_of(ours)).orders) == expected


@pytest.mark.parametrize(("name", "order"), [("Q8", 4), ("Q8", 2), ("S4", 12), ("A4", 4), ("C4", 2), ("D8", 4)])
def test_the_universal_embedding_is_an_injective_homomorphism(name, order):
    group = group_of(name)
    normal = next(
        closure
        for element in range(len(group))
        for closure in [group.normal_closure([element])]
        if closure.sum() == order
    )
    embedding = universal_embedding(group, normal)
    quotient = embedding.quotient
    assert normal[embedding.functions].all()
    pairs = {(tuple(f), h) for f, h in zip(embedding.functions.tolist(), embedding.coset.tolist())}
    assert len(pairs) == len(group)
    for g, k in itertools.product(range(len(group)), repeat=2):
        shifted = embedding.functions[k][quotient.products[:, embedding.coset[g]]]
        product = group.products[embedding.functions[g], shifted]
        whole = group.products[g, k]
        assert (embedding.functions[whole] == product).all()
        assert embedding.coset[whole] == quotient.products[embedding.coset[g], embedding.coset[k]]
    for g in range(len(group)):
        assert embedding.inverse(embedding.functions[g, 0], embedding.coset[g]) == g


def test_the_embedding_lands_in_the_wreath_product():
    group = group_of("Q8")
    embedding = universal_embedding(group, group.normal_closure([int((group.orders == 4).argmax())]))
    normal, members = group.subgroup(np.isin(np.arange(8), np.unique(embedding.functions)))
    wreath = FiniteGroup.wreath(normal, embedding.quotient)
    number = {int(element): place for place, element in enumerate(members)}
    code = [
        (number[int(f[0])] * 4 + number[int(f[1])]) * 2 + int(h) for f, h in zip(embedding.functions, embedding.coset)
    ]
    for g, k in itertools.product(range(8), repeat=2):
        assert code[group.products[g, k]] == wreath.products[code[g], code[k]]


@pytest.mark.parametrize(("base", "acting"), [(2, 2), (3, 2), (2, 3), (2, 4), (4, 2)])
def test_wreath_products_are_groups_of_order_n_to_the_h_times_h(base, acting):
    wreath = FiniteGroup.wreath(FiniteGroup.cyclic(base), FiniteGroup.cyclic(acting))
    assert len(wreath) == base**acting * acting and is_group(wreath.products)


def test_a_trivial_action_makes_the_direct_product():
    c2, c3 = FiniteGroup.cyclic(2), FiniteGroup.cyclic(3)
    assert group_name(FiniteGroup.direct(c3, c2)) == "C6"
    inversion = np.array([[0, 1, 2], [0, 2, 1]])
    assert group_name(FiniteGroup.semidirect(c3, c2, inversion)) == "D6"
    with pytest.raises(sl.BadInput, match="homomorphism"):
        FiniteGroup.semidirect(FiniteGroup.cyclic(4), c2, np.array([[0, 1, 2, 3], [0, 2, 1, 3]]))


def test_the_quaternions_are_no_semidirect_product_and_d8_is():
    def splits(group):
        masks = [group.generate(pair) for pair in itertools.combinations(range(len(group)), 2)]
        proper = [mask for mask in masks if 1 < mask.sum() < len(group)]
        return any(
            group.is_normal(n) and (n & h).sum() == 1 and n.sum() * h.sum() == len(group)
            for n in proper
            for h in proper
        )

    quaternions = group_of("Q8")
    minus_one = int((quaternions.orders == 2).argmax())
    assert not splits(quaternions) and splits(group_of("D8"))
    assert all(quaternions.generate([element])[minus_one] for element in range(1, 8))


def test_a4_has_the_normal_klein_group_of_double_transpositions():
    group = group_of("A4")
    klein = group.orders <= 2
    assert klein.sum() == 4 and group.is_normal(klein)
    subgroup, _ = group.subgroup(klein)
    assert group_name(subgroup) == "C2×C2" and is_group(subgroup.products)


@pytest.mark.parametrize("name", ["C5", "C2×C2", "D6", "D8", "Q8", "A4", "S4", "A5", "S5", "D10", "D12"])
def test_groups_are_called_by_their_names(name):
    machine = {"C2×C2": "C2^2"}.get(name, name)
    assert group_name(group_of(machine)) == name


def test_quotients_need_normal_subgroups():
    group = group_of("D6")
    flip = group.generate([int((group.orders == 2).argmax())])
    with pytest.raises(sl.BadInput, match="normal"):
        group.quotient(flip)
    rotations = group.generate([int((group.orders == 3).argmax())])
    quotient, coset = group.quotient(rotations)
    assert len(quotient) == 2 and (coset[rotations] == 0).all()
    assert PermutationGroup([Permutation(row.tolist()) for row in group.permutations]).order() == 6
