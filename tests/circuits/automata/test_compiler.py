import itertools
import time

import pytest
import torch
from simulation import errors, random_words

import sandlab as sl
from sandlab.circuits import METHODS, bits_needed, compare_methods, complexity, precision_sweep, rounded, verify

CHOSEN = {
    "parity": ("modular-counter", 1),
    "C2^3": ("group", 1),
    "flip-flop": ("memory", 1),
    "Grid9": ("gridworld", 2),
    "Grid3x4": ("gridworld", 2),
    "abab": ("krohn-rhodes", 5),
    "Q8": ("group", 4),
    "S5": ("scan", 7),
}


@pytest.mark.parametrize(("name", "expected"), CHOSEN.items())
def test_auto_takes_the_shallowest_construction_and_says_why(name, expected):
    machine = sl.worlds.named_machine(name)
    model = sl.circuits.compile(machine, length=100)
    method, depth = expected
    assert model.config.note.startswith(f"auto: {method} is the shallowest") and model.config.layers == depth
    assert ("not solvable" in model.config.note) == (name == "S5")
    assert errors(model, machine, random_words(machine.alphabet, 100, 10, 0)) == 0


def test_the_example_of_the_design_agrees_everywhere():
    machine = sl.worlds.Automaton(transitions=[[0, 1], [1, 0]], start=0)
    shortcut = sl.circuits.compile(machine, length=128, method="scan")
    assert sl.lenses.agreement(shortcut, machine, examples=64, rng=sl.rng(2)) == 1.0


def test_regular_expressions_and_tables_compile_from_text():
    model = sl.circuits.compile("(abab)*", length=20)
    machine = sl.worlds.from_regex("(abab)*")
    assert errors(model, machine, random_words(2, 20, 50, 0)) == 0
    table = sl.circuits.compile('{"transitions": [[1, 0], [1, 1]]}', length=9, method="krohn-rhodes")
    assert table.config.outputs == 2


def test_every_method_either_works_or_says_why_not():
    machine = sl.worlds.Cyclic(size=3)
    reports = {report.method: report for report in compare_methods(machine, 12)}
    assert set(reports) == set(METHODS)
    works = {name for name, report in reports.items() if report.applies}
    assert works == set(METHODS) - {"gridworld", "memory", "semidirect"}
    for name, report in reports.items():
        assert report.reason and (report.size is not None) == report.applies
        if report.applies:
            assert errors(METHODS[name](machine, 12), machine, random_words(3, 12, 20, 0)) == 0


def test_verification_counts_errors():
    machine = sl.worlds.named_machine("abab")
    model = sl.circuits.compile(machine, 40)
    result = verify(model, machine, rng=sl.rng(0))
    assert result["exhaustive_words"] == 2 ** result["exhaustive_length"]
    assert result["exhaustive_errors"] == result["random_errors"] == 0
    with torch.no_grad():
        model.layers[0].mlp.maps[-1].weight.mul_(0.5)
    assert verify(model, machine, rng=sl.rng(0))["random_errors"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"machine": "S5", "method": "krohn-rhodes"}, "S5 (order 120"),
        ({"machine": "parity", "method": "scam"}, "did you mean 'scan'"),
        ({"machine": "parity", "length": 0}, "length must be"),
        ({"machine": "((a", "length": 5}, "does not parse"),
        ({"machine": "parity", "padding": "constant"}, "name the method"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_one_sentence(arguments, words):
    with pytest.raises(sl.BadInput, match=r"^[^\n]+$") as refusal:
        sl.circuits.compile(arguments.pop("machine"), **{"length": 10, **arguments})
    assert words in str(refusal.value)


def test_other_worlds_are_refused():
    with pytest.raises(sl.BadInput, match="only automata"):
        sl.circuits.compile(sl.worlds.RubiksCube(), 10)
    with pytest.raises(sl.BadInput, match="scratchpad"):
        sl.circuits.compile(sl.worlds.Cyclic(scratchpad=True), 10)


def test_a_circuit_is_saved_recorded_and_trained_like_any_model(tmp_path):
    machine = sl.worlds.named_machine("abab", length=16)
    model = sl.circuits.compile(machine, 16)
    twin = sl.models.load(model.save(tmp_path / "circuit"))
    words = random_words(2, 16, 10, 0)
    with torch.no_grad():
        assert torch.equal(twin(words), model(words))
    assert twin.config == model.config
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    batch = machine.sample(8, rng=sl.rng(0))
    loss = torch.nn.functional.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
    loss.backward()
    optimizer.step()
    assert loss.isfinite() and errors(model, machine, words) == 0


def test_compiling_any_machine_of_six_states_at_length_256_takes_seconds():
    worst = 0.0
    for seed in range(8):
        machine = sl.worlds.random_automaton(6, 3, rng=sl.rng(seed))
        begin = time.perf_counter()
        sl.circuits.compile(machine, 256)
        worst = max(worst, time.perf_counter() - begin)
    assert worst < 20


def test_a_trained_transformer_is_measured_in_the_same_terms():
    model = sl.models.Transformer(vocab=3, length=20, layers=2, heads=4, width=32, mlp_width=48)
    size = complexity(model)
    assert (size.depth, size.width, size.heads, size.head_width, size.mlp_width) == (2, 32, 4, 8, 48)
    assert size.parameters == model.parameter_count() and size.gates == 20 * 2 * 48 and size.wires == size.gates * 48
    assert complexity(sl.models.LSTM(vocab=3, width=16)).width == 16


def test_fewer_bits_than_needed_break_the_circuit_and_enough_do_not():
    machine = sl.worlds.Cyclic(size=3, length=30)
    model = sl.circuits.compile(machine, 30, "modular-counter")
    batch = machine.sample(10, rng=sl.rng(0))
    sweep = precision_sweep(model, batch.inputs, batch.targets, bits=range(1, 20))
    assert sweep.needed is not None and 3 <= sweep.needed <= 15
    assert sweep.accuracy[0] < 1 and sweep.accuracy[-1] == 1
    assert bits_needed(model, batch.inputs, batch.targets) == sweep.needed
    assert bits_needed(model, batch.inputs, batch.targets, most=1) is None
    with rounded(model, 5) as coarse, torch.no_grad():
        values = torch.cat([parameter.flatten() for parameter in coarse.parameters()]) * 32
    assert (values == values.round()).all()


def test_bits_grow_like_the_logarithm_of_the_length():
    needed = []
    for length in (8, 16, 32, 64):
        machine = sl.worlds.Cyclic(size=2, length=length)
        batch = machine.sample(16, rng=sl.rng(1))
        model = sl.circuits.compile(machine, length, "modular-counter")
        needed.append(precision_sweep(model, batch.inputs, batch.targets, bits=range(2, 24)).needed)
    growth = [later - sooner for sooner, later in itertools.pairwise(needed)]
    assert all(0 <= step <= 3 for step in growth) and sum(growth) >= 2


def test_a_circuit_is_trained_by_the_laboratory_s_own_loop():
    machine = sl.worlds.named_machine("flip-flop", length=12)
    model = sl.circuits.compile(machine, 12)
    history = sl.learning.train(model, machine, steps=3, batch_size=8, lr=1e-9, rng=sl.rng(0))
    assert len(history.loss) == 3 and history.loss[-1] < 1.0
    assert errors(model, machine, random_words(3, 12, 50, 0)) == 0


@pytest.mark.slow
def test_a_circuit_is_exported_as_a_graph():
    machine = sl.worlds.named_machine("abab", length=16)
    model = sl.circuits.compile(machine, 16)
    words = random_words(2, 16, 4, 0)
    graph = torch.export.export(model, (words,))
    assert torch.equal(graph.module()(words), model(words))
