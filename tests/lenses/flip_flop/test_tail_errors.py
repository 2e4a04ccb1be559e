import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import sandlab as sl
from sandlab.circuits.flip_flop.memory import flip_flop_transformer
from sandlab.lenses.flip_flop.glitches import draw_glitch, find_glitch
from sandlab.lenses.flip_flop.tail_errors import (
    ErrorCurve,
    best_so_far,
    error_curve,
    errors_by,
    exact_interval,
    tail_error,
    wrong_targets,
)
from sandlab.worlds.base import Batch
from sandlab.worlds.flip_flop.language import FlipFlop, latest_write


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
    population = sl.learning.Population(
        lambda seed: sl.models.Transformer(vocab=5, length=15, layers=1, width=8), seeds=range(3)
    )
    world = FlipFlop.ignoring(0.5, length=16)
    rates = tail_error(population, world, targets=300, rng=sl.rng(1))
    for index, rate in enumerate(rates):
        assert rate == tail_error(population.member(index), world, targets=300, rng=sl.rng(1))


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
    return FlipFlop(length=8).label(strings)


def test_a_labelled_prefix_counts_only_when_it_is_one() -> None:
    strings = torch.tensor([[0, 4, 2, 3, 1], [2, 4, 0, 3, 1], [0, 4, 1, 3, 1], [0, 4, 1, 4, 2]])
    batch = label(strings)  # w1i0r, i1w0r (no write first), w1r0r (a wrong answer inside), w1r1i (no read last)
    assert batch.mask.flatten().tolist() == [True, False, False, False]
    assert batch.targets[0].tolist() == [4]
    assert not bool(label(torch.tensor([[1]])).mask.any())


def test_the_streamed_curve_counts_each_read_at_its_distance() -> None:
    world, reach, edges = FlipFlop.ignoring(0.8, length=64), 4, [0, 1, 3, 5, 9, 100]
    curve = error_curve(Forgetful(reach), world, world.since_write, edges, targets=3000, rng=sl.rng(6), chunk=100)
    generator, count = sl.rng(6), 0
    errors, counts = np.zeros(5), np.zeros(5)
    while count < 3000:
        batch = world.sample(100, rng=generator)
        for row, latest, stored in zip(batch.inputs, batch.truth["latest_write"], batch.truth["stored"]):
            for pair in (row[0::2] == 1).nonzero().flatten().tolist():
                far = pair - int(latest[pair])
                cell = int(np.searchsorted(edges, far, side="right")) - 1
                counts[cell] += 1
                errors[cell] += far > reach and int(stored[pair]) == 1
                count += 1
    assert curve.counts.tolist() == counts.tolist() and curve.errors.tolist() == errors.tolist()
    low, high = curve.intervals
    for cell in range(1, 5):
        assert (low[cell], high[cell]) == pytest.approx(exact_interval(int(errors[cell]), int(counts[cell])))


def test_a_curve_without_errors_resolves_one_in_a_hundred_thousand() -> None:
    curve = ErrorCurve(np.array([0.0, 1.0]), np.array([0]), np.array([400_000]))
    assert curve.rates[0] == 0 and curve.intervals[1][0] < 1e-5


def test_a_population_s_curve_has_one_row_per_member() -> None:
    population = sl.learning.Population(
        lambda seed: sl.models.Transformer(vocab=5, length=15, layers=1, width=8), seeds=range(2)
    )
    world = FlipFlop.ignoring(0.5, length=16)
    curve = error_curve(population, world, world.since_told, [0, 2, 8], targets=200, rng=sl.rng(7))
    for index in range(2):
        alone = error_curve(population.member(index), world, world.since_told, [0, 2, 8], targets=200, rng=sl.rng(7))
        assert alone.errors.tolist() == curve.errors[index].tolist()


def test_the_glitch_of_a_forgetful_reader_is_found_and_cut_to_the_shortest() -> None:
    worlds = [FlipFlop.ignoring(0.8, length=length) for length in (8, 16, 32, 64)]
    glitch = find_glitch(Forgetful(3), worlds, examples=512, rng=sl.rng(3), label=label, group=2)
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


@pytest.mark.slow
def test_ten_million_positions_are_counted_without_being_held() -> None:
    import resource

    class Latest(nn.Module):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return nn.functional.one_hot((tokens - 1).clamp(min=0), 2).float()

    world = sl.worlds.FlipFlopTransduction(length=200, idle=0.5)
    tail_error(Latest(), world, targets=200_000, rng=sl.rng(8), chunk=1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = tail_error(Latest(), world, targets=10_000_000, rng=sl.rng(8), chunk=1000)
    assert found.count == 10_000_000
    # Wrong where the cell holds 1 and the token is a no-op: ½ · ½, up to the first token of each string.
    assert found.rate == pytest.approx(0.25 * 199 / 200, abs=1e-3)
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    )  # kilobytes; 10⁷ labels are 80 000 alone
