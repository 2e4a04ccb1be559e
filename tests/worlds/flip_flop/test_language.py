import math
from collections import Counter

import pytest
import torch

import sandlab as sl
from sandlab.lenses.flip_flop.exact_machines import window_error
from sandlab.worlds.automata.addition import Addition, adder_as_flip_flop
from sandlab.worlds.base import Batch
from sandlab.worlds.flip_flop.language import FlipFlop, FlipFlopTransduction, chat_prompt


def step_by_step(string: list[int]) -> bool:
    """Membership by reading one token after another."""
    cell = None
    for kind, symbol in zip(string[0::2], string[1::2]):
        if kind == 0:
            cell = symbol
        if kind == 1 and symbol != cell:
            return False
    return string[0] == 0 and string[-2] == 1


@pytest.mark.parametrize("length", [4, 6, 8, 10])
def test_the_support_has_two_times_five_to_the_half_length_minus_two_strings(length: int) -> None:
    world = FlipFlop.ignoring(0.4, length=length)
    strings, weights = world.enumerate()
    assert len({tuple(string) for string in strings.tolist()}) == 2 * 5 ** (length // 2 - 2)
    assert float(weights.sum()) == pytest.approx(1.0)
    assert all(step_by_step(string) for string in strings.tolist())


def test_samples_follow_the_enumerated_distribution() -> None:
    world = FlipFlop(length=8, probs=((0.3, 0.2), (0.1, 0.6)))
    strings, weights = world.enumerate()
    batch = world.sample(40_000, rng=sl.rng(0))
    full = torch.cat([batch.inputs, batch.targets[:, -1:]], 1)
    seen = Counter(tuple(string) for string in full.tolist())
    for string, weight in zip(strings.tolist(), weights.tolist()):
        deviation = abs(seen.pop(tuple(string), 0) - 40_000 * weight)
        assert deviation < 5 * math.sqrt(40_000 * weight) + 1
    assert not seen


@pytest.mark.parametrize("probs", [((0.3, 0.2),), ((0.3, 0.2), (0.1, 0.6))])
def test_the_oracle_is_the_conditional_distribution_of_the_enumerated_strings(probs: tuple) -> None:
    world = FlipFlop(length=8, probs=probs, mode="generative")
    strings, weights = world.enumerate()
    batch = world.sample(64, rng=sl.rng(1))
    predicted = world.oracle(batch).exp()
    for row, string in enumerate(batch.inputs):
        for time in range(7):
            agree = (strings[:, : time + 1] == string[: time + 1]).all(1)
            mass = torch.zeros(5, dtype=torch.float64).index_add_(0, strings[agree, time + 1], weights[agree])
            assert torch.allclose(predicted[row, time], mass / mass.sum(), atol=1e-12)


def test_membership_agrees_with_reading_token_by_token() -> None:
    world = FlipFlop.ignoring(0.5, length=10)
    generator = sl.rng(2)
    kinds = torch.randint(3, (4000, 5), generator=generator)
    kinds[:, 0], kinds[:, -1] = 0, 1
    strings = torch.stack([kinds, torch.randint(3, 5, (4000, 5), generator=generator)], -1).flatten(1)
    verdicts = world.accepts(strings)
    assert verdicts.tolist() == [step_by_step(string) for string in strings.tolist()]
    assert 0 < int(verdicts.sum()) < 4000
    assert world.accepts(torch.tensor([0, 3, 2, 4, 2, 3, 1, 3])) is True
    assert world.accepts(torch.tensor([0, 3, 2, 4, 0, 4, 1, 3])) is False


@pytest.mark.parametrize(
    ("ignore", "reads", "floor"), [(0.8, 26.4, 0.62908), (0.98, 3.54, 0.39807), (0.1, 115.3, 0.66253)]
)
def test_read_counts_and_loss_floors_have_their_closed_forms(ignore: float, reads: float, floor: float) -> None:
    world = FlipFlop.ignoring(ignore, mode="generative")
    assert world.expected_reads() == pytest.approx(reads)
    assert world.loss_floor() == pytest.approx(floor, abs=1e-5)
    batch = world.sample(1000, rng=sl.rng(3))
    read = (1 - ignore) / 2
    counted = (batch.inputs == 1).sum(1).double().mean()
    assert abs(float(counted) - reads) <= 4 * math.sqrt(254 * read * (1 - read) / 1000)
    assert world.optimal_loss(batch) == pytest.approx(floor, abs=0.003)


@pytest.mark.parametrize(("ignore", "window"), [(0.98, 21), (0.8, 11), (0.1, 3), (0.98, 101)])
def test_the_window_predictor_errs_as_its_formula_says(ignore: float, window: int) -> None:
    world = FlipFlop.ignoring(ignore)
    batch = world.sample(4000, rng=sl.rng(4))
    kinds = batch.inputs[:, 0::2]
    informative = torch.where(kinds != 2, torch.arange(256), -1)
    before = torch.cat([torch.full((4000, 1), -1), informative.cummax(1).values[:, :-1]], 1)
    blind = (torch.arange(256) - before) > (window - 1) // 2
    reads = kinds == 1
    error = 0.5 * (blind & reads).sum() / reads.sum()
    assert float(error) == pytest.approx(world.ngram_error(window), abs=0.005)


def test_coarse_tokens_ask_for_the_stored_symbol() -> None:
    world = FlipFlop.ignoring(0.5, length=40, symbols=3, tokens="coarse")
    batch = world.sample(50, rng=sl.rng(5))
    assert batch.inputs.shape == (50, 20) and world.vocab == 7 and world.outputs == 3
    for row, answers in zip(batch.inputs.tolist(), batch.targets.tolist()):
        cell = None
        for token, answer in zip(row, answers):
            cell = token if token < 3 else cell
            if token == 6:
                assert answer == cell
    assert world.optimal_loss(batch) == 0.0


def test_transduction_labels_each_position_with_the_latest_write() -> None:
    world = FlipFlopTransduction(length=30, idle=0.7, symbols=3)
    batch = world.sample(40, rng=sl.rng(6))
    for row, states in zip(batch.inputs.tolist(), batch.targets.tolist()):
        cell = None
        for operation, state in zip(row, states):
            cell = operation - 1 if operation else cell
            assert state == cell
    assert torch.equal(world.label(batch.inputs).targets, batch.targets)
    assert world.optimal_loss(batch) == 0.0


def test_twenty_digit_sums_through_the_carry_flip_flop_are_right() -> None:
    digits = torch.randint(10, (1000, 2, 20), generator=sl.rng(7)).tolist()
    for first, second in digits:
        a, b = int("".join(map(str, first))), int("".join(map(str, second)))
        assert adder_as_flip_flop(a, b)[0] == a + b
    assert adder_as_flip_flop(9991999919909993, 6109199190990097)[0] == 16101199110900090
    assert adder_as_flip_flop(95, 4)[1] == ["⊥", "⊥"]


def test_the_addition_world_gives_the_digits_of_the_sum() -> None:
    batch = Addition(digits=15).sample(50, rng=sl.rng(8))
    for pairs, answer in zip(batch.inputs.tolist(), batch.targets.tolist()):
        a = sum((pair // 10) * 10**index for index, pair in enumerate(pairs))
        b = sum((pair % 10) * 10**index for index, pair in enumerate(pairs))
        assert [(a + b) // 10**index % 10 for index in range(15)] == answer


@pytest.mark.parametrize("base", [2, 10])
def test_the_oracle_of_addition_adds_the_places_it_sees_and_is_told_no_answer(base: int) -> None:
    world = Addition(digits=15, base=base)
    batch = world.sample(20, rng=sl.rng(9))
    for places in (1, 6, 15):
        pairs = batch.inputs[:, :places]
        told = world.oracle(Batch(pairs, torch.zeros_like(pairs), torch.ones_like(pairs, dtype=torch.bool)))
        assert torch.equal(told.argmax(-1), batch.targets[:, :places]) and bool((told.exp().sum(-1) == 1).all())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 7}, "length must be even"),
        ({"probs": ((0.7, 0.6),)}, "p_w \\+ p_r of at most 1"),
        ({"mode": "cleen"}, "did you mean 'clean'"),
        ({"symbols": 1}, "symbols must be a whole number of at least 2"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(options: dict, message: str) -> None:
    with pytest.raises(sl.BadInput, match=message):
        FlipFlop(**options)


@pytest.mark.parametrize("tokens", ["fine", "coarse"])
def test_distances_go_back_to_the_latest_write_and_to_the_latest_answer(tokens: str) -> None:
    world = FlipFlop(length=40, probs=((0.2, 0.3),), tokens=tokens)
    batch = world.sample(20, rng=sl.rng(11))
    since_write, since_told = world.since_write(batch), world.since_told(batch)
    for row in range(20):
        inputs = batch.inputs[row].tolist()
        if tokens == "fine":
            kinds = inputs[0::2]
        else:
            kinds = [1 if token == 4 else 0 if token < 2 else 2 for token in inputs]
        for pair in range(1, 20):
            writes = max(p for p in range(pair + 1) if kinds[p] == 0)
            told = max(p for p in range(pair) if kinds[p] != 2)
            time = 2 * pair if tokens == "fine" else pair
            assert int(since_write[row, time]) == pair - writes
            assert int(since_told[row, time]) == pair - told


def test_a_chat_prompt_tells_the_string_but_its_answer() -> None:
    batch = FlipFlop.ignoring(0.5, length=8).sample(1, rng=sl.rng(12))
    string = torch.cat([batch.inputs[0], batch.targets[0, -1:]])
    prompt = chat_prompt(string)
    told = prompt.split(": ")[-1].split()
    assert told == [["w", "r", "i", "0", "1"][token] for token in string[:-1].tolist()]


@pytest.mark.parametrize("window", range(1, 10))
def test_windows_of_even_length_see_the_symbol_of_one_more_pair(window: int) -> None:
    world = FlipFlop.ignoring(0.8, length=10)
    assert world.ngram_error(window) == pytest.approx(window_error(world, window), abs=1e-12)


@pytest.mark.parametrize("mode", ["clean", "generative"])
def test_the_oracle_of_a_prefix_is_the_prefix_of_the_oracle(mode: str) -> None:
    world = FlipFlop.ignoring(0.5, 0.9, length=12, mode=mode)
    batch = world.sample(20, rng=sl.rng(7))
    whole = world.oracle(batch)
    for time in range(1, 12):
        prefix = Batch(batch.inputs[:, :time], batch.targets[:, :time], batch.mask[:, :time])
        assert torch.equal(world.oracle(prefix), whole[:, :time]), time
