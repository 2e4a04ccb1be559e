import itertools

import pytest
import torch
from sympy.combinatorics import Permutation, PermutationGroup

import sandlab as sl
from sandlab.worlds.automata.rubik import RUBIK_TURNS

SIZES = {
    "parity": 2,
    "flip-flop": 3,
    "memory4": 5,
    **{f"C{n}": n for n in range(2, 9)},
    "C2^2": 4,
    "C2^3": 8,
    "D6": 6,
    "D8": 8,
    "Q8": 8,
    "A4": 12,
    "S4": 24,
    "A5": 60,
    "S5": 120,
    "abab": 9,
    "Dyck1_1": 5,
    "Dyck2_1": 14,
    "Dyck2_2": 59,
    "Dyck3_2": 284,
}


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_semigroups_of_named_automata_have_their_known_sizes(name, size):
    assert len(sl.worlds.named_machine(name).semigroup()) == size


@pytest.mark.parametrize("n", range(2, 10))
def test_gridworld_monoids_have_n_n_minus_1_2n_minus_1_over_6_plus_n_elements(n):
    semigroup = sl.worlds.Grid(size=n).semigroup()
    assert not semigroup.has_identity and semigroup.is_aperiodic
    assert len(semigroup) + 1 == n * (n - 1) * (2 * n - 1) // 6 + n


def test_flags_of_named_automata():
    flags = {
        name: (s.is_group, s.is_abelian, s.is_aperiodic, s.has_identity)
        for name in ("C4", "D6", "flip-flop", "Grid4", "abab")
        for s in [sl.worlds.named_machine(name).semigroup()]
    }
    assert flags == {
        "C4": (True, True, False, True),
        "D6": (True, False, False, True),
        "flip-flop": (False, False, True, True),
        "Grid4": (False, False, True, False),
        "abab": (False, False, False, False),
    }


def test_every_named_automaton_samples_what_its_table_says():
    for name in sl.worlds.machine_names():
        machine = sl.worlds.named_machine(name, length=25)
        batch = machine.sample(40, rng=sl.rng(3))
        state = torch.full((40,), machine.start)
        for place in range(25):
            state = torch.tensor(machine.transitions)[state, batch.truth["letters"][:, place]]
            assert (state == batch.truth["states"][:, place]).all(), name
        assert batch.targets.max() < machine.outputs
        assert len(machine.letters) == machine.alphabet and len(machine.names_of_states) == machine.states


def test_the_nineteen_automata_of_the_depth_table_are_there():
    assert len(set(sl.worlds.DEPTH_TABLE)) == 19
    assert all(sl.worlds.named_machine(name) for name in sl.worlds.DEPTH_TABLE)


def test_abab_reads_as_in_the_source():
    machine = sl.worlds.Abab()
    assert "".join(map(str, machine.run("abababaaabab").tolist())) == "012301244444"
    observed = torch.tensor(machine.task(label="accept").labels)
    assert "".join(map(str, observed[machine.run("ababababa")].tolist())) == "000100010"
    assert "".join(map(str, observed[machine.run("ababbabab")].tolist())) == "000100000"


def test_the_car_drives_and_turns():
    car = sl.worlds.Dihedral(positions=4)
    place, direction, word = 0, 1, torch.randint(2, (30,), generator=sl.rng(0)).tolist()
    for letter, state in zip(word, car.run(word).tolist()):
        place, direction = ((place + direction) % 4, direction) if letter == 0 else (place, -direction)
        assert state == 4 * (direction < 0) + place


def test_quaternions_multiply_as_they_should():
    machine = sl.worlds.Quaternion()
    names = machine.names_of_states
    assert [names[q] for q in machine.run("ii")] == ["i", "-1"]
    # q_t = σ_t ⋯ σ_1: the word k j i spells i·j·k = −1.
    assert names[machine.run("kji")[-1]] == "-1"
    assert names[machine.run("ij")[-1]] == "-k"


def test_the_first_entry_of_a_permutation_can_be_observed():
    machine = sl.worlds.SymmetricGroup(points=5, letters_used=5, label="first", length=10)
    batch = machine.sample(20, rng=sl.rng(0))
    arrangements = list(itertools.permutations(range(5)))
    assert all(arrangements[q][0] == y for q, y in zip(batch.truth["states"].flatten(), batch.targets.flatten()))
    assert machine.names_of_states[arrangements.index((1, 0, 3, 2, 4))] == "21435"


def test_generators_of_the_symmetric_and_alternating_groups():
    assert sl.worlds.SymmetricGroup(points=5).letters[:2] == ["21345", "23451"]
    assert sl.worlds.AlternatingGroup(points=5).letters == ["23145", "24315", "25341"]
    assert len(sl.worlds.AlternatingGroup(points=4, idle=True).letters) == 3


def test_bracket_words_are_legal_and_uniform_over_legal_letters():
    machine = sl.worlds.DyckStack(depth=3, types=2, length=30)
    batch = machine.sample(3000, rng=sl.rng(0))
    states, words = batch.truth["states"], batch.truth["letters"]
    assert (machine.run(words) == states).all() and (states < machine.states - 1).all()
    before = torch.cat([torch.zeros(3000, 1, dtype=torch.long), states[:, :-1]], 1)
    probs = torch.tensor(machine.letter_probs())
    for state in range(machine.states - 1):
        letters = words[before == state]
        share = torch.bincount(letters, minlength=4).double() / len(letters)
        assert (share - probs[state]).abs().max() < 5 * (0.25 / len(letters)) ** 0.5, machine.names_of_states[state]


def test_dyck_4_2_has_31_stacks_and_81_classes_and_dyck_4_8_shows_its_top():
    machine = sl.worlds.DyckStack(depth=4, types=2)
    assert (machine.states, machine.outputs) == (32, 81)
    top = sl.worlds.DyckStack(depth=4, types=8, label="top", length=40)
    batch = top.sample(50, rng=sl.rng(0))
    assert top.outputs == 9
    stack, word = [], batch.truth["letters"][0].tolist()
    for letter, label in zip(word, batch.targets[0].tolist()):
        stack = [*stack, letter + 1] if letter < 8 else stack[:-1]
        assert label == (stack[-1] if stack else 0)


def test_the_rubik_group_has_its_known_order():
    turns = []
    for cycles in RUBIK_TURNS.values():
        turns.append(Permutation([[sticker - 1 for sticker in cycle] for cycle in cycles], size=48))
    assert PermutationGroup(turns).order() == 43_252_003_274_489_856_000
    free = (3**8 * 40320) * (2**12 * 479001600)
    assert free == 519_024_039_293_878_272_000 and free // 43_252_003_274_489_856_000 == 12


def test_four_equal_turns_of_the_cube_undo_themselves_and_runs_compose_permutations():
    cube = sl.worlds.RubiksCube(length=4)
    words = torch.arange(6).unsqueeze(1).expand(6, 4)
    assert (cube.run(words)[:, 3] == torch.arange(48)).all() and (cube.run(words)[:, 1] != torch.arange(48)).any()
    batch = sl.worlds.RubiksCube(length=20, watch=5).sample(3, rng=sl.rng(0))
    place = torch.full((3,), 4)
    for turn in range(20):
        place = cube.turns[batch.inputs[:, turn], place]
        assert (place == batch.targets[:, turn]).all()


@pytest.mark.parametrize("name", ["Gird9", "D7", "C", "S12"])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(sl.BadInput):
        sl.worlds.named_machine(name)
