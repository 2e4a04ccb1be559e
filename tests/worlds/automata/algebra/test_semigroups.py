import itertools
import time

import numpy as np
import pytest
import torch

import sandlab as sl


def closure(maps):
    """Brute force: multiply everything with everything until nothing new appears."""
    known = {tuple(row) for row in maps}
    while True:
        new = {tuple(g[q] for q in f) for f in known for g in known} - known
        if not new:
            return known
        known |= new


@pytest.mark.parametrize("seed", range(12))
def test_enumeration_finds_the_closure(seed):
    machine = sl.worlds.random_automaton(2 + seed % 3, 1 + seed % 3, rng=sl.rng(seed))
    semigroup = machine.semigroup()
    assert {tuple(row) for row in semigroup.maps.tolist()} == closure(machine.maps.tolist())
    assert len(semigroup) == len({tuple(row) for row in semigroup.maps.tolist()})


@pytest.mark.parametrize("seed", range(6))
def test_tables_words_and_flags_follow_the_definitions(seed):
    machine = sl.worlds.random_automaton(3 + seed % 2, 2, rng=sl.rng(100 + seed))
    semigroup = machine.semigroup()
    maps = semigroup.maps.astype(int)
    for e, f in itertools.product(range(len(maps)), repeat=2):
        assert (maps[semigroup.products[e, f]] == maps[f][maps[e]]).all()
    lengths = [len(semigroup.word(element)) for element in range(len(maps))]
    assert lengths == sorted(lengths)
    for element in range(len(maps)):
        final = [int(machine.run(torch.tensor(semigroup.word(element)), q)[-1]) for q in range(machine.states)]
        assert final == maps[element].tolist()
    powers_settle = []
    for row in maps:
        power = row
        for _ in range(machine.states):
            power = row[power]
        powers_settle.append(bool((row[power] == power).all()))
    assert semigroup.is_aperiodic == all(powers_settle)
    commutes = all((f[g] == g[f]).all() for f in maps for g in maps)
    assert semigroup.is_abelian == commutes
    assert semigroup.is_group == all(len(set(row)) == machine.states for row in maps.tolist())
    assert semigroup.has_identity == ((maps == np.arange(machine.states)).all(1)).any()


def test_the_flip_flop_multiplies_as_the_last_write_wins():
    semigroup = sl.worlds.Memory(values=2).semigroup()
    hold, zero, one = (int(element) for element in semigroup.letters)
    expected = {(zero, x): zero for x in (zero, one, hold)} | {(one, x): one for x in (zero, one, hold)}
    expected |= {(hold, zero): zero, (hold, one): one, (hold, hold): hold}
    # f∘g: first g, then f.
    assert all(semigroup.products[g, f] == value for (f, g), value in expected.items())


def test_abab_contains_a_group_of_two_elements():
    semigroup = sl.worlds.Abab().semigroup()
    assert len(semigroup) == 9 and not semigroup.has_identity and not semigroup.is_aperiodic
    element = semigroup.find(np.array([4, 3, 4, 1, 4]))
    square = semigroup.products[element, element]
    assert element >= 0 and square != element and semigroup.products[square, element] == element
    assert semigroup.idempotents[square]


def test_too_large_semigroups_are_refused():
    with pytest.raises(sl.BadInput, match="more than 50 elements"):
        sl.worlds.named_machine("S5").semigroup(limit=50)


def test_the_full_transformation_monoid_on_six_points_has_six_to_the_six_elements():
    # The full transformation monoid on 6 points has 6⁶ elements.
    rotate, swap, merge = [1, 2, 3, 4, 5, 0], [1, 0, 2, 3, 4, 5], [0, 0, 2, 3, 4, 5]
    begin = time.perf_counter()
    semigroup = sl.worlds.Automaton(transitions=np.array([rotate, swap, merge]).T).semigroup()
    assert len(semigroup) == 6**6 and time.perf_counter() - begin < 30
