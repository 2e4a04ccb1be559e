"""In-context n-grams: targets, starts and lags against the definition; losses against published lines."""

from __future__ import annotations

import itertools

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.worlds.base import cross_entropy
from sandlab.worlds.markov.lifted import conditional_distribution, stationary_distribution
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams, spread_kernel


def row_by_hand(kernel: torch.Tensor, tokens: list[int], lags: tuple[int, ...], states: int) -> torch.Tensor:
    """Row of the kernel for the token after `tokens`, the largest lag being the first digit."""
    number = 0
    for lag in sorted(lags, reverse=True):
        number = number * states + tokens[-lag]
    return kernel[number]


@pytest.mark.parametrize("lags", [None, (2, 4), (1, 3)])
@pytest.mark.parametrize("start", ["uniform", "stationary"])
def test_target_is_the_kernels_row_at_the_end_of_the_sequence(lags, start):
    world = InContextNgrams(states=3, order=2, length=9, start=start, lags=lags)
    batch = world.sample(30, rng=rng(0))
    assert batch.targets.shape == (30, 1, 3) and batch.mask.shape == (30, 1) and batch.soft
    for tokens, kernel, probs in zip(batch.inputs.tolist(), batch.truth["kernels"], batch.targets):
        assert torch.allclose(probs[0], row_by_hand(kernel, tokens, world.parents, 3))


@pytest.mark.parametrize("lags", [None, (1, 3)])
def test_reading_everywhere_counts_the_positions_whose_context_is_complete(lags):
    world = InContextNgrams(states=3, order=2, length=8, lags=lags, read="all")
    batch = world.sample(10, rng=rng(1))
    assert batch.targets.shape == (10, 8, 3)
    assert batch.mask[0].tolist() == [t + 1 >= world.memory for t in range(8)]
    later = InContextNgrams(states=3, order=2, length=8, lags=lags, read="all", read_from=6).sample(2, rng=rng(1))
    assert later.mask[0].tolist() == [False] * 5 + [True] * 3
    for t in range(world.memory - 1, 8):
        tokens = batch.inputs[4, : t + 1].tolist()
        assert torch.allclose(batch.targets[4, t], row_by_hand(batch.truth["kernels"][4], tokens, world.parents, 3))


def test_token_targets_are_draws_from_the_distribution():
    world = InContextNgrams(states=2, order=1, length=3, targets="token")
    batch = world.sample(60_000, rng=rng(3))
    assert batch.targets.shape == (60_000, 1) and not batch.soft
    rows = batch.truth["kernels"][torch.arange(60_000), batch.inputs[:, -1]]
    assert float((batch.targets[:, 0] - rows[:, 1]).mean().abs()) < 0.01
    likely = rows[:, 1] > 0.8
    assert float(batch.targets[likely, 0].double().mean()) == pytest.approx(float(rows[likely, 1].mean()), abs=0.02)


@pytest.mark.parametrize("lags", [None, (1, 3)])
def test_stationary_start_makes_every_window_stationary(lags):
    world = InContextNgrams(states=2, order=2, length=10, start="stationary", lags=lags)
    batch = world.sample(50_000, rng=rng(2))
    probs = stationary_distribution(spread_kernel(batch.truth["kernels"], 2, world.parents))
    powers = 2 ** torch.arange(world.memory - 1, -1, -1)
    for position in (0, 4):
        code = (batch.inputs[:, position : position + world.memory] * powers).sum(-1)
        # E[1[window = w] − π(w)] = 0 for every window, and stays 0 when weighted by anything known of the kernel.
        gap = torch.nn.functional.one_hot(code, 2**world.memory) - probs
        assert float(gap.mean(0).abs().max()) < 0.01
        assert float((gap * probs).mean(0).abs().max()) < 0.01


def test_spread_kernel_ignores_the_tokens_between():
    kernels = torch.rand(4, 9, 3)
    spread = spread_kernel(kernels, 3, (1, 3))
    for window in itertools.product(range(3), repeat=3):
        number = window[0] * 9 + window[1] * 3 + window[2]
        assert torch.equal(spread[:, number], kernels[:, window[0] * 3 + window[2]])


def test_lower_order_probs_are_rows_of_the_conditional_distribution():
    world = InContextNgrams(states=2, order=2, length=6, start="stationary")
    batch = world.sample(20, rng=rng(0))
    probs = world.lower_order_probs(batch, (1,))
    rows = conditional_distribution(batch.truth["kernels"], (1,))
    for example in range(20):
        assert torch.allclose(probs[example], rows[example, batch.inputs[example, -1]])


def test_longer_sequences_bring_the_counts_to_the_lower_order_probs():
    errors = []
    for length in (50, 400, 3200):
        world = InContextNgrams(states=2, order=2, length=length, concentration=1.0, start="stationary")
        batch = world.sample(200, rng=rng(5))
        counted = CountingEstimator(2, (1,)).probabilities(batch.inputs)[:, -1]
        errors.append(float((counted - world.lower_order_probs(batch, (1,))).square().sum(-1).mean()))
    assert errors[0] > errors[1] > errors[2]
    # The mean squared error of counts falls like 1/T.
    assert errors[0] / errors[2] == pytest.approx(64, rel=0.6)


@pytest.mark.parametrize(
    ("states", "order", "length", "alpha", "lines", "entropy"),
    [
        (3, 3, 128, 0.5, (1.0568, 1.0135, 0.9292, 0.7615), 0.6391),
        (5, 2, 32, 0.5, (1.6274, 1.6189, 1.4370), 1.0547),
        (3, 2, 32, 1.0, (1.0767, 1.0413, 0.9534), 0.8197),
    ],
)
def test_smoothed_estimators_have_the_known_losses(states, order, length, alpha, lines, entropy):
    world = InContextNgrams(states, order, length, alpha)
    batch = world.sample(2**14, rng=rng(0))
    names = ["unigram", "bigram", "trigram", "4-gram"]
    for name, line in zip(names, lines):
        assert float(cross_entropy(world.baselines()[name](batch), batch)) == pytest.approx(line, abs=0.012)
    assert world.optimal_loss(batch) == pytest.approx(lines[-1], abs=0.012)
    assert float(torch.special.entr(batch.targets).sum(-1).mean()) == pytest.approx(entropy, abs=0.012)


def test_subsets_hold_every_set_of_lags_once():
    named = InContextNgrams(order=3, length=8).subsets()
    assert len(named) == 8
    assert {"unigram", "bigram", "trigram", "4-gram", "lags {2}", "lags {1,3}"} <= set(named)
    assert named["lags {1,3}"].smoothing == 0.5


def test_lagged_world_has_its_own_set_among_the_baselines_and_it_is_best():
    world = InContextNgrams(states=3, order=2, length=200, lags=(2, 4))
    batch = world.sample(2000, rng=rng(0))
    losses = {name: float(cross_entropy(f(batch), batch)) for name, f in world.baselines().items()}
    assert min(losses, key=losses.__getitem__) == "lags {2,4}"
    assert losses["lags {2,4}"] == pytest.approx(world.optimal_loss(batch))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"order": 0}, "order"),
        ({"lags": (1, 1)}, "lags"),
        ({"lags": (1,)}, "lags"),
        ({"lags": (0, 2)}, "lag"),
        ({"length": 3, "lags": (2, 4)}, "length"),
        ({"read": "first"}, "read"),
        ({"targets": "tokens"}, "targets"),
        ({"concentration": 0.0}, "concentration"),
    ],
)
def test_impossible_tasks_are_refused_by_name(options, named):
    with pytest.raises(BadInput, match=named):
        InContextNgrams(**options)


def test_description_gives_both_names_and_the_gaps():
    text = InContextNgrams(order=2, lags=(2, 4)).describe()
    assert "trigram (n = 3" in text and "2-gram by previous tokens" in text and "(2, 4)" in text
