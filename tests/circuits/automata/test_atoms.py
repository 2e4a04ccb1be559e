import math

import pytest
import torch
from simulation import all_words, errors, random_words

import sandlab as sl
from sandlab.circuits import (
    complexity,
    counter_circuit,
    memory_circuit,
    rnn_circuit,
    sequential_circuit,
    sine_counter_circuit,
    truncated_counter,
)


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("length", [1, 10, 100])
def test_the_counter_is_exact_for_every_start(size, length):
    for start in range(size):
        machine = sl.worlds.Cyclic(size=size, start=start)
        model = counter_circuit(machine, length)
        words = random_words(size, length, 20, start)
        words[0], words[1] = size - 1, 0
        assert errors(model, machine, words) == 0
    measured = complexity(model)
    assert measured.depth == 1 and measured.width == 3 and measured.heads == 1 and measured.head_width == 1
    assert measured.mlp_width == 4 * ((size - 1) * length + 1)
    assert measured.norm <= 4 * size * length + 2


@pytest.mark.parametrize("size", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_a_thousand_random_words_of_256_letters_are_counted_exactly(size):
    machine = sl.worlds.Cyclic(size=size)
    assert errors(counter_circuit(machine, 256), machine, random_words(size, 256, 1000, 0)) == 0


def test_every_position_weighs_one_over_two_t():
    length = 50
    model = counter_circuit(sl.worlds.Cyclic(size=3), length)
    with sl.record(model, "layers.0.attention.pattern") as cache, torch.no_grad():
        model(random_words(3, length, 1, 0))
    pattern = cache["layers.0.attention.pattern"][0, 0]
    real = torch.ones(length, length, dtype=torch.float64).tril() / (2 * length)
    assert (pattern[1:, 1:] - real).abs().max() < 1e-12


def test_without_the_factor_two_the_counter_is_wrong():
    """The printed table reads T·s, half the count."""
    machine = sl.worlds.Cyclic(size=3)
    model = counter_circuit(machine, 20)
    with torch.no_grad():
        mlp = model.layers[0].mlp
        mlp.maps[0].weight.mul_(0.5)
    assert errors(model, machine, random_words(3, 20, 20, 0)) > 0


@pytest.mark.parametrize("length", [10, 1000])
def test_sine_units_count_with_a_width_that_does_not_grow(length):
    for size in (2, 5):
        machine = sl.worlds.Cyclic(size=size, start=1)
        model = sine_counter_circuit(machine, length)
        assert errors(model, machine, random_words(size, length, 4, 0)) == 0
        assert complexity(model).mlp_width == 2


@pytest.mark.parametrize(("values", "length"), [(2, 10), (5, 100), (9, 200)])
def test_the_memory_reads_the_last_write_within_an_eighth(values, length):
    for start in (0, values - 1):
        machine = sl.worlds.Memory(values=values, start=start, length=length)
        model = memory_circuit(machine, length)
        words = machine.sample(30, rng=sl.rng(0)).inputs
        words[0] = 0
        with sl.record(model, "layers.0.resid_mid") as cache, torch.no_grad():
            model(words)
        expected = machine.run(words) + 1.0
        assert (cache["layers.0.resid_mid"][..., 0] - expected).abs().max() <= 1 / 8
        assert errors(model, machine, words) == 0
        size = complexity(model)
        assert size.depth == 1 and size.width == 4 and size.head_width == 2 and size.mlp_width == 4 * values
        assert complexity(model).norm <= 2 * length * math.log(values * length)


def test_with_factor_one_a_write_leads_a_late_hold_by_a_single_position():
    """The text prints c(j/T − 1[hold]), the matrices give factor 2: both read the last write, the margins differ."""
    machine = sl.worlds.Memory(values=3, length=30)
    model = memory_circuit(machine, 30)
    words = torch.zeros(1, 30, dtype=torch.long)
    words[0, 0] = 3
    margins = []
    for factor in (1.0, 0.5):
        with torch.no_grad():
            model.layers[0].attention.query[0, :, 0] *= factor
            with sl.record(model, "layers.0.attention.scores") as cache:
                model(words)
        scores = cache["layers.0.attention.scores"][0, 0, -1]
        margins.append(float(scores[0] - scores[1:].max()) / math.log(16 * 3 * 30))
        assert errors(model, machine, words) == 0
    assert margins == pytest.approx([31, 1])


def test_the_memory_norm_bound_needs_sixteen():
    """2T log(nT) ≥ T log(16nT) exactly when nT ≥ 16."""
    small = memory_circuit(sl.worlds.Memory(values=2), 4)
    assert complexity(small).norm > 2 * 4 * math.log(2 * 4)
    edge = memory_circuit(sl.worlds.Memory(values=2), 8)
    assert complexity(edge).norm == pytest.approx(2 * 8 * math.log(2 * 8))


def test_a_counter_that_knows_few_sums_is_right_exactly_when_the_sum_is_known():
    length, probs = 20, (0.7, 0.3)
    machine = sl.worlds.Cyclic(size=2, length=length, probs=probs).observe([1, 0])
    plain = machine.task(observation=None)
    model = truncated_counter(plain, length, range(3, 12))
    batch = plain.sample(200, rng=sl.rng(0))
    with torch.no_grad():
        right = model(batch.inputs).argmax(-1) == batch.targets
    count = batch.inputs.cumsum(1)
    known = (count >= 3) & (count < 12)
    # Unknown sums give state 0, right by chance when the count is even.
    assert (right == (known | (count % 2 == 0))).all()


def test_the_sequential_circuit_takes_a_layer_per_letter():
    for name in ("Grid4", "abab", "S3"):
        machine = sl.worlds.named_machine(name)
        model = sequential_circuit(machine, 7)
        assert model.config.layers == 7
        assert errors(model, machine, all_words(machine.alphabet, 7)[:2000]) == 0


def test_after_some_layers_so_many_positions_of_the_sequential_circuit_are_right():
    machine = sl.worlds.named_machine("S3")
    model = sequential_circuit(machine, 8)
    words = random_words(machine.alphabet, 8, 50, 0)
    with sl.record(model, "layers.*.resid_post") as cache, torch.no_grad():
        model(words)
    states = machine.run(words)
    for layer in range(7):
        reached = cache[f"layers.{layer}.resid_post"][:, 1:, 0].round().long() - 1
        assert (reached[:, : layer + 1] == states[:, : layer + 1]).all()
        assert (reached[:, layer + 1 :] != states[:, layer + 1 :]).any()


def test_the_recurrent_circuit_runs_words_of_any_length():
    for name, start in (("S4", 3), ("Grid9", 4), ("abab", 3)):
        machine = sl.worlds.named_machine(name, start=start)
        model = rnn_circuit(machine)
        assert errors(model, machine, random_words(machine.alphabet, 300, 10, 0)) == 0
        assert model.config.width == machine.states * machine.alphabet + 1


@pytest.mark.parametrize(
    ("build", "name"), [(counter_circuit, "Grid4"), (memory_circuit, "C3"), (sine_counter_circuit, "D6")]
)
def test_a_machine_that_does_not_fit_is_refused(build, name):
    with pytest.raises(sl.BadInput, match="try method"):
        build(sl.worlds.named_machine(name), 10)
