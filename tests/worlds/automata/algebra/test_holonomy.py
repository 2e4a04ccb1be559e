import numpy as np
import pytest

import sandlab as sl
from sandlab.worlds import holonomy


def random_machine(seed, most=5):
    return sl.worlds.random_automaton(2 + seed % (most - 1), 2 + seed % 2, rng=sl.rng(seed))


@pytest.mark.parametrize("seed", range(40))
def test_coordinates_follow_the_automaton(seed):
    machine = random_machine(seed)
    form = holonomy(machine.maps)
    random = np.random.default_rng(seed)
    for start in range(machine.states):
        coordinates, state = form.encode(start), start
        assert form.decode(coordinates) == start
        for letter in random.integers(machine.alphabet, size=40):
            coordinates, state = form.step(coordinates, letter), machine.transitions[state][letter]
            assert form.decode(coordinates) == state


@pytest.mark.parametrize("seed", range(20))
def test_each_letter_permutes_or_resets_a_component_given_the_levels_above(seed):
    """Definition of the cascade: with higher levels fixed, a letter acts on a component as a bijection or constant."""
    machine = random_machine(seed, most=4)
    form = holonomy(machine.maps)
    random = np.random.default_rng(seed)
    sizes = [len(component.tiles) for component in form.components]
    for number, component in enumerate(form.components):
        for _ in range(10):
            coordinates = np.array([random.integers(size) for size in sizes])
            for letter in range(machine.alphabet):
                images = []
                for tile in range(sizes[number]):
                    changed = coordinates.copy()
                    changed[number] = tile
                    # Components of the same or a lower level must not matter for this one.
                    for other, rival in enumerate(form.components):
                        if other != number and rival.level <= component.level:
                            changed[other] = random.integers(sizes[other])
                    images.append(int(form.step(changed, letter)[number]))
                assert len(set(images)) in (1, sizes[number])


@pytest.mark.parametrize("n", range(3, 10))
def test_gridworlds_have_n_minus_1_levels_of_one_two_tile_component(n):
    form = holonomy(sl.worlds.Grid(size=n).maps)
    assert form.levels == n - 1 == len(form.components)
    assert all(
        len(component.tiles) == 2 and component.group_name == "the trivial group" for component in form.components
    )


def test_groups_decompose_into_themselves():
    for name in ("C2", "C5", "D6", "D8", "Q8", "A4", "S4"):
        machine = sl.worlds.named_machine(name)
        form = holonomy(machine.maps)
        assert form.levels == 1 and len(form.components[0].group) == len(machine.semigroup())


@pytest.mark.parametrize(
    ("name", "solvable"), [("S4", True), ("A4", True), ("A5", False), ("S5", False), ("Grid9", True), ("abab", True)]
)
def test_solvable_machines_are_told_from_others(name, solvable):
    assert holonomy(sl.worlds.named_machine(name).maps).solvable is solvable


def test_a5_acts_on_five_states_and_is_not_solvable():
    # A_5 as permutations of five points: five states suffice for a machine that is not solvable.
    machine = sl.worlds.from_generators([[1, 2, 0, 3, 4], [1, 3, 2, 0, 4], [1, 4, 2, 3, 0]])
    form = holonomy(machine.maps)
    assert machine.states == 5 and not form.solvable
    assert form.components[0].group_name == "A5" and len(form.components[0].group) == 60


def test_abab_holds_a_two_element_group():
    form = holonomy(sl.worlds.Abab().maps)
    assert sorted(
        component.group_name for component in form.components if component.group_name != "the trivial group"
    ) == ["C2"]


def test_aperiodic_means_that_every_group_is_trivial():
    for seed in range(60):
        machine = random_machine(seed)
        trivial = all(len(component.group) == 1 for component in holonomy(machine.maps).components)
        assert trivial == machine.semigroup().is_aperiodic


def test_levels_can_outnumber_states():
    deepest = max(
        holonomy(machine.maps).levels - machine.states
        for seed in range(400)
        for machine in [sl.worlds.random_automaton(5, 3, rng=sl.rng(seed))]
    )
    assert deepest >= 1
