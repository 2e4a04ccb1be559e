import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import sandlab as sl
from sandlab.circuits.flip_flop import flip_flop_transformer
from sandlab.lenses.glitches import draw_glitch, find_glitch
from sandlab.lenses.tail_errors import best_so_far, errors_by, exact_interval, tail_error, wrong_targets
from sandlab.worlds.base import Batch
from sandlab.worlds.flip_flop import FlipFlop, latest_write


class Forgetful(nn.Module):
    """Answers a read with the latest write of the last `reach` pairs, else with symbol 0."""

    def __init__(self, reach: int) -> None:
        super().__init__()
        self.reach = reach

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        kinds, symbols = tokens[:, 0::2], tokens[:, 1::2]
        latest = latest_write(kinds)
        seen = (torch.arange(kinds.shape[1]) - latest <= self.reach) & (latest < symbols.shape[1])
        answer = torch.where(seen, symbols.gather(1, latest.clamp(max=symbols.shape[1] - 1)), 3)
        logits = torch.zeros(*tokens.shape, 5)
        logits[:, 0::2] = nn.functional.one_hot(answer, 5).float()
        return logits


def test_the_interval_is_where_the_observed_count_stops_being_surprising() -> None:
    for errors, count in ((0, 1000), (3, 500), (500, 500)):
        low, high = exact_interval(errors, count)
        if errors:
            assert stats.binom.sf(errors - 1, count, low) == pytest.approx(0.025, abs=1e-6)
        if errors < count:
            assert stats.binom.cdf(errors, count, high) == pytest.approx(0.025, abs=1e-6)
    assert exact_interval(0, 400_000)[1] < 1e-5


def test_the_streamed_rate_is_the_rate_that_the_forgetful_reader_must_have() -> None:
    world, reach = FlipFlop.ignoring(0.8, length=64), 4
    found = tail_error(Forgetful(reach), world, targets=20_000, rng=sl.rng(0), chunk=200)
    generator, errors, count = sl.rng(0), 0, 0
    while count < 20_000:
        batch = world.sample(200, rng=generator)
        kinds = batch.inputs[:, 0::2]
        far = torch.arange(32) - latest_write(kinds) > reach
        answers = batch.truth["stored"]
        errors += int((far & (kinds == 1) & (answers == 1)).sum())
        count += int((kinds == 1).sum())
    assert (found.errors, found.count) == (errors, count)


def test_a_population_gives_one_rate_per_member() -> None:
    crowd = sl.learning.Population(
        lambda seed: sl.models.Transformer(vocab=5, length=15, layers=1, width=8), seeds=range(3)
    )
    world = FlipFlop.ignoring(0.5, length=16)
    rates = tail_error(crowd, world, targets=300, rng=sl.rng(1))
    for place, rate in enumerate(rates):
        assert rate == tail_error(crowd.member(place), world, targets=300, rng=sl.rng(1))


def test_restricting_the_choice_to_symbols_never_adds_errors() -> None:
    model = sl.models.Transformer(vocab=5, length=15, layers=1, width=8)
    batch = FlipFlop.ignoring(0.5, length=16).sample(200, rng=sl.rng(2))
    free, bits = wrong_targets(model, batch), wrong_targets(model, batch, among=slice(3, 5))
    assert not bool((bits & ~free).any())


def test_errors_are_counted_in_the_right_bin() -> None:
    wrong = torch.tensor([[True, False, True, False]])
    mask = torch.tensor([[True, True, True, False]])
    rows = errors_by(wrong, mask, torch.tensor([[1, 2, 5, 5]]), np.array([0, 3, 6, 9]))
    assert [(row["from"], row["rate"], row["count"]) for row in rows] == [(0, 0.5, 2), (3, 1.0, 1)]


def test_best_so_far_is_the_running_minimum() -> None:
    assert best_so_far(np.array([3, 5, 2, 4, 1])).tolist() == [3, 3, 2, 2, 1]


def label(strings: torch.Tensor) -> Batch:
    """Strings that end with an r: the answer counts when the string is a valid prefix."""
    kinds, symbols = strings[:, 0::2], strings[:, 1::2]
    stored = symbols.gather(1, latest_write(kinds).clamp(max=symbols.shape[1] - 1))
    valid = (kinds[:, 0] == 0) & (kinds[:, -1] == 1)
    earlier = (kinds[:, :-1] != 1) | (symbols == stored[:, :-1])
    return Batch(strings, stored[:, -1:], (valid & earlier.all(1)).unsqueeze(1))


def test_the_glitch_of_a_forgetful_reader_is_found_and_cut_to_the_shortest() -> None:
    worlds = [FlipFlop.ignoring(0.8, length=length) for length in (8, 16, 32, 64)]
    glitch = find_glitch(Forgetful(3), worlds, examples=512, rng=sl.rng(3), label=label, pairs=2)
    assert glitch is not None
    # One write of symbol 1, three ignores (or harmless reads) beyond reach, and the read itself: 2·4 + 1 tokens.
    assert len(glitch.tokens) == 9 and glitch.truth == 4 and glitch.answer == 3
    assert bool(label(glitch.tokens.unsqueeze(0)).mask.all())


def test_a_perfect_reader_has_no_glitch() -> None:
    model = flip_flop_transformer(32)
    worlds = [FlipFlop.ignoring(0.5, length=length) for length in (8, 32)]
    assert find_glitch(model, worlds, examples=256, rng=sl.rng(4)) is None


def test_a_glitch_can_be_drawn() -> None:
    model = sl.models.Transformer(vocab=5, length=32, layers=2, heads=2, width=16)
    glitch = find_glitch(model, [FlipFlop.ignoring(0.5, length=16)], rng=sl.rng(5))
    assert glitch is not None
    figure = draw_glitch(model, glitch, ["w", "r", "i", "0", "1"])
    assert len([axis for axis in figure.axes if axis.images]) == 4
