import math

import pytest
import torch
from simulation import all_words, errors, random_words

import sandlab as sl
from sandlab.circuits import complexity, depth_report, krohn_rhodes_circuit, scan_circuit


def random_machine(seed, start=0):
    """2 to 5 states, 2 or 3 letters."""
    return sl.worlds.random_automaton(2 + seed % 4, 2 + seed % 2, rng=sl.rng(seed, "automata"), start=start)


def check_size(model, machine, length):
    """The bounds of Theorem 11 with n = |Q|, and of Theorem 10 for the scan."""
    n, letters, size = machine.states, machine.alphabet, complexity(model)
    elements = len(machine.semigroup())
    assert size.depth <= 3 * n**2 * math.log2(n) + 7 * n
    assert size.width <= 2**n * (elements + n + 4) + 1
    assert size.heads <= 2 ** (n + 1) * (elements + 1)
    tables = 20 * n * elements * length + 4 * n + elements**2 * n + float(n) ** (2**n) * letters
    assert size.mlp_width <= 2**n * tables
    bound = max(6 * n * length * math.log(length), 2**n * (elements + 5 * n)) + 6 * max(n, letters)
    assert size.norm <= bound


@pytest.mark.parametrize(
    "name", ["flip-flop", "Grid3", "Grid4", "abab", "C4", "D6", "memory4", "Dyck2_1", "Grid3x4", "S4"]
)
def test_named_machines_are_exact_from_their_starts(name):
    states = sl.worlds.named_machine(name).states
    words = random_words(sl.worlds.named_machine(name).alphabet, 32, 30, 0)
    for start in range(0, states, 1 + states // 12):
        machine = sl.worlds.named_machine(name, start=start)
        assert errors(krohn_rhodes_circuit(machine, 32), machine, words) == 0


@pytest.mark.parametrize("n", range(3, 8))
def test_gridworlds_take_two_n_minus_three_layers_whatever_the_length(n):
    machine = sl.worlds.Grid(size=n)
    depths = {krohn_rhodes_circuit(machine, length).config.layers for length in (4, 64)}
    assert depths == {2 * n - 3}


def check_machine(seed, long_words):
    """Scan and Krohn–Rhodes on every word up to length 8 and on long random ones, from every start."""
    machine = random_machine(seed)
    short = all_words(machine.alphabet, 8)
    long = random_words(machine.alphabet, 256, long_words, seed)
    for start in range(machine.states):
        started = machine.task(start=start)
        for build in (scan_circuit, krohn_rhodes_circuit):
            assert errors(build(started, 8), started, short) == 0, (seed, start, build)
            assert errors(build(started, 256), started, long) == 0, (seed, start, build)
    size = complexity(scan_circuit(machine, 256))
    n = machine.states
    assert size.depth == 8 and size.width == 2 * n + 2 and size.mlp_width == 4 * n**2 + n
    check_size(krohn_rhodes_circuit(machine, 256), machine, 256)


@pytest.mark.parametrize("seed", range(3))
def test_random_machines_are_exact_on_all_short_words_and_on_long_ones(seed):
    check_machine(seed, long_words=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_three_hundred_random_machines_are_exact(seed):
    check_machine(seed, long_words=20)


@pytest.mark.gate(10)
@pytest.mark.parametrize("seed", range(3, 40))
def test_more_random_machines_are_exact(seed):
    machine = random_machine(seed, start=1)
    model = krohn_rhodes_circuit(machine, 30)
    assert errors(model, machine, random_words(machine.alphabet, 30, 40, seed)) == 0
    check_size(model, machine, 30)


def test_every_automaton_of_at_most_four_states_is_solvable_and_some_of_five_are_not():
    assert all(random_machine(seed).is_solvable for seed in range(80))
    assert not sl.worlds.from_generators([[1, 2, 3, 4, 0], [1, 2, 0, 3, 4]]).is_solvable


def test_without_the_look_back_many_machines_go_wrong():
    """The wiring needs the states before the step; reading the position itself instead is not enough."""
    spoiled = 0
    for seed in range(40):
        machine = random_machine(seed)
        model = krohn_rhodes_circuit(machine, 20)
        words = random_words(machine.alphabet, 20, 20, seed)
        wiring = [n for n, layer in enumerate(model.layers) if is_look_back(model, layer)]
        patched = {
            f"layers.{n}.attention.pattern": lambda p: torch.eye(p.shape[-1], dtype=p.dtype).expand_as(p)
            for n in wiring
        }
        if wiring:
            with sl.patch(model, patched):
                spoiled += errors(model, machine, words) > 0
    assert spoiled >= 10


def is_look_back(model, layer):
    written = model.config.channels.index("possible states before")
    return layer.attention.output.numel() > 0 and bool((layer.attention.output[..., written] != 0).any())


def test_without_the_anchor_many_machines_go_wrong():
    spoiled = 0
    for seed in range(40):
        machine = random_machine(seed)
        model = krohn_rhodes_circuit(machine, 20)
        with torch.no_grad():
            model.anchors[0, model.config.channels.index("reset")] = 0
        spoiled += errors(model, machine, random_words(machine.alphabet, 20, 20, seed)) > 0
    assert spoiled >= 10


def test_a_machine_with_one_state_needs_no_layers():
    machine = sl.worlds.Automaton(transitions=[[0, 0]])
    model = krohn_rhodes_circuit(machine, 5)
    assert model.config.layers == 0 and errors(model, machine, all_words(2, 5)) == 0


def test_observations_are_written_by_the_last_level():
    for machine in (sl.worlds.Grid(size=6, label="boundary"), sl.worlds.Abab(label="accept")):
        model = krohn_rhodes_circuit(machine, 20)
        assert model.config.outputs == 2
        assert errors(model, machine, random_words(2, 20, 200, 0)) == 0


def test_a_machine_that_is_not_solvable_is_refused_by_the_group_it_holds():
    points = sl.worlds.from_generators([[1, 2, 3, 4, 0], [1, 2, 0, 3, 4]])
    with pytest.raises(sl.BadInput, match=r"holds A5 \(order 60, acting on 5 sets of states\), which is not solvable"):
        krohn_rhodes_circuit(points, 10)
    with pytest.raises(sl.BadInput, match="S5"):
        krohn_rhodes_circuit(sl.worlds.named_machine("S5"), 10)


def test_the_depth_report_names_the_group_that_forbids_constant_depth():
    report = depth_report(sl.worlds.from_generators([[1, 2, 3, 4, 0], [1, 2, 0, 3, 4]]))
    assert not report.solvable and report.groups == ("A5",) and "TC⁰ = NC¹" in report.statement
    assert depth_report(sl.worlds.Grid(size=5)) == depth_report(sl.worlds.Grid(size=5, start=2))
    assert depth_report(sl.worlds.Abab()).groups == ("C2",) and depth_report(sl.worlds.Abab()).solvable
