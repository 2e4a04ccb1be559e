import math

import pytest
import torch
from simulation import all_words, errors, random_words, truth

import sandlab as sl
from sandlab.circuits import complexity, compose_functions, scan_circuit


def machine_of(states, letters, seed, start=0):
    return sl.worlds.random_automaton(states, letters, rng=sl.rng(seed), start=start)


@pytest.mark.parametrize("states", [2, 3, 5, 8])
@pytest.mark.parametrize("padding", ["identity", "constant"])
def test_the_scan_is_exact_for_every_start_at_many_lengths(states, padding):
    for length in (1, 2, 4, 7, 16, 64):
        for start in range(states):
            machine = machine_of(states, 1 + states % 4, states, start)
            model = scan_circuit(machine, length, padding=padding)
            assert errors(model, machine, random_words(machine.alphabet, length, 20, length)) == 0
            assert model.config.layers == max(1, math.ceil(math.log2(length)))


@pytest.mark.parametrize(
    ("name", "length"),
    [("flip-flop", 256), ("S3", 64), *(pytest.param(n, 256, marks=pytest.mark.slow) for n in ("C3", "S3"))],
)
def test_a_thousand_random_words_are_simulated_exactly(name, length):
    machine = sl.worlds.named_machine(name, length=length)
    assert errors(scan_circuit(machine, length), machine, random_words(machine.alphabet, length, 1000, 0)) == 0


@pytest.mark.parametrize(("states", "length"), [(2, 32), (5, 64), (4, 256)])
def test_the_scan_has_the_stated_size(states, length):
    size = complexity(scan_circuit(machine_of(states, 3, 1), length))
    assert size.depth == math.log2(length) and size.width == 2 * states + 2 and size.heads == 2
    assert size.head_width == max(states, 2) and size.mlp_width == 4 * states**2 + states
    assert size.anchors == length
    bound = max(4 * states + 2, 10 * length * math.sqrt(math.log(states) + math.log(length)))
    assert size.norm == pytest.approx(bound, abs=1e-9)


def test_each_head_looks_where_it_should_up_to_the_stated_error():
    states, length = 4, 32
    model = scan_circuit(machine_of(states, 2, 3), length)
    with sl.record(model, "layers.*.attention.pattern") as cache, torch.no_grad():
        model(random_words(2, length, 1, 0))
    tokens = torch.arange(2 * length)
    for layer in range(5):
        pattern = cache[f"layers.{layer}.attention.pattern"][0]
        for head, back in ((0, 2**layer), (1, 0)):
            # The first positions have nothing that far back.
            rows = tokens[back:]
            ideal = torch.zeros(len(rows), 2 * length)
            ideal[torch.arange(len(rows)), rows - back] = 1
            assert (pattern[head, back:] - ideal).abs().sum(1).max() <= 0.1 / (states * length)


def test_with_the_printed_sign_of_the_rotation_the_head_looks_the_wrong_way():
    machine = machine_of(4, 2, 3)
    model = scan_circuit(machine, 32)
    words = random_words(2, 32, 50, 1)
    assert errors(model, machine, words) == 0
    with torch.no_grad():
        for layer in model.layers:
            # Turning by −θ instead of θ transposes the rotation, which couples the two position channels.
            key = layer.attention.key[0]
            key[-2:, :2] = key[-2:, :2].T.clone()
    assert errors(model, machine, words) > 0.2 * words.numel()


def test_another_coordinate_than_the_start_errs_only_at_the_last_position():
    """With constant padding every coordinate agrees until the window holds no padding any more."""
    machine = sl.worlds.Cyclic(size=4, start=2)
    length, words = 16, random_words(4, 16, 200, 2)
    model = scan_circuit(machine, length, padding="constant")
    with sl.record(model, "layers.3.attention.z") as cache, torch.no_grad():
        model(words)
    # In the last layer the two heads read the earlier map and that of the position itself.
    earlier, present = cache["layers.3.attention.z"][:, 0, length:], cache["layers.3.attention.z"][:, 1, length:]
    final = compose_functions(4)(torch.cat([earlier, present], -1)).round().long() - 1
    expected = truth(machine, words, machine.start)
    wrong = (final != expected.unsqueeze(-1)).any(-1)
    assert not wrong[:, :-1].any() and wrong[:, -1].any()
    assert (final[..., machine.start] == expected).all()


def test_large_groups_are_composed_on_few_points():
    for name, points in (("S4", 4), ("A5", 5), ("S5", 5)):
        for start in (0, 7):
            machine = sl.worlds.named_machine(name, start=start)
            model = scan_circuit(machine, 20)
            assert model.config.width == 2 * points + 2
            assert errors(model, machine, random_words(machine.alphabet, 20, 30, 0)) == 0


def test_observations_are_read_out_directly():
    machine = sl.worlds.Grid(size=5, label="boundary")
    assert errors(scan_circuit(machine, 12), machine, random_words(2, 12, 100, 0)) == 0


def test_float32_is_exact_at_length_256():
    machine = machine_of(3, 2, 5)
    model = scan_circuit(machine, 256).float()
    assert errors(model, machine, random_words(2, 256, 10, 0)) == 0


def test_shorter_words_are_prefixes():
    machine = machine_of(3, 3, 9)
    model = scan_circuit(machine, 32)
    assert errors(model, machine, all_words(3, 4)) == 0
