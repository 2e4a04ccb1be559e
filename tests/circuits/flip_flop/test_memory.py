import pytest
import torch

import sandlab as sl
from sandlab.circuits.flip_flop.memory import (
    flip_flop_parser,
    flip_flop_transformer,
    memory_transformer,
    parser_machine,
)
from sandlab.worlds.flip_flop.language import FlipFlop, FlipFlopTransduction


def wrong_reads(model: torch.nn.Module, strings: torch.Tensor) -> int:
    """Reads whose answer, among all five tokens, is not the symbol that follows."""
    with torch.no_grad():
        answers = model(strings[:, :-1]).argmax(-1)
    reads = strings[:, :-1] == 1
    return int((answers != strings[:, 1:])[reads].sum())


@pytest.mark.parametrize("length", [4, 6, 8, 10, 12])
def test_the_two_layer_circuit_answers_every_read_of_every_short_string(length: int) -> None:
    strings, _ = FlipFlop.ignoring(0.8, length=length).enumerate()
    assert wrong_reads(flip_flop_transformer(length), strings) == 0


@pytest.mark.parametrize("ignore", [0.8, 0.98, 0.1])
def test_the_two_layer_circuit_answers_every_read_of_long_strings(ignore: float) -> None:
    model = flip_flop_transformer(512)
    batch = FlipFlop.ignoring(ignore).sample(48, rng=sl.rng(int(100 * ignore)))
    assert wrong_reads(model, torch.cat([batch.inputs, batch.targets[:, -1:]], 1)) == 0


@pytest.mark.slow
def test_the_two_layer_circuit_answers_every_read_of_a_million_random_strings() -> None:
    model, generator = flip_flop_transformer(64), sl.rng(9)
    world = FlipFlop.ignoring(0.1, 0.8, 0.98, length=64)
    for _ in range(1_000_000 // 500):
        batch = world.sample(500, rng=generator)
        assert wrong_reads(model, torch.cat([batch.inputs, batch.targets[:, -1:]], 1)) == 0


def test_a_circuit_that_is_not_sharp_enough_guesses() -> None:
    batch = FlipFlop.ignoring(0.8).sample(20, rng=sl.rng(3))
    strings = torch.cat([batch.inputs, batch.targets[:, -1:]], 1)
    reads = int(batch.mask.sum())
    assert 0.35 < wrong_reads(flip_flop_transformer(512, sharpness=512.0), strings) / reads < 0.65


def test_the_first_layer_marks_writes_and_their_symbols_exactly() -> None:
    model = flip_flop_transformer(64)
    tokens = FlipFlop.ignoring(0.6, length=64).sample(10, rng=sl.rng(4)).inputs
    with sl.record(model, "layers.0.resid_post") as cache:
        model(tokens)
    marks = cache["layers.0.resid_post"][..., 6]
    writes = tokens == 0
    expected = writes.clone()
    expected[:, 1:] |= writes[:, :-1]
    assert torch.equal(marks.detach(), expected.double())


@pytest.mark.parametrize("symbols", [2, 5])
def test_the_memory_circuit_knows_the_latest_symbol_everywhere(symbols: int) -> None:
    world = FlipFlopTransduction(length=200, idle=0.9, symbols=symbols)
    model = memory_transformer(200, symbols)
    assert sl.lenses.agreement(model, world, examples=100, rng=sl.rng(5)) == 1.0


@pytest.mark.parametrize("ignore", [0.8, 0.1])
def test_the_parser_knows_the_stored_bit_at_every_read(ignore: float) -> None:
    assert parser_machine().states == 4
    batch = FlipFlop.ignoring(ignore, length=200).sample(50, rng=sl.rng(8))
    with torch.no_grad():
        bits = flip_flop_parser()(batch.inputs).argmax(-1)
    assert torch.equal(bits[batch.mask], batch.targets[batch.mask] - 3)


def test_the_circuits_are_ordinary_models() -> None:
    model = flip_flop_transformer(16)
    assert model.parameter_count() == sum(weight.numel() for weight in model.parameters())
    world = FlipFlop.ignoring(0.5, length=16)
    history = sl.learning.train(model, world, steps=3, batch_size=8, rng=sl.rng(6), lr=1e-4)
    assert history.loss[0] < 1e-9
