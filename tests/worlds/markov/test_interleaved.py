"""Interleaved chains: the lag rules the sequence, the oracle is the sum over lags."""

from __future__ import annotations

import itertools

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.worlds.base import cross_entropy
from sandlab.worlds.markov.chain import next_token_batch
from sandlab.worlds.markov.interleaved import InterleavedChains


@pytest.mark.parametrize("start", ["stationary", "uniform"])
def test_tokens_at_the_chosen_lag_follow_the_kernel(start):
    world = InterleavedChains(lags=(1, 3), length=20, start=start)
    batch = world.sample(6000, rng=rng(0))
    table = world.chain.table
    assert set(batch.truth["lag"].tolist()) == {1, 3}
    assert float((batch.truth["lag"] == 1).double().mean()) == pytest.approx(0.5, abs=0.03)
    tokens = torch.cat([batch.inputs, batch.targets[:, -1:]], 1)
    probs = world.chain.stationary() if start == "stationary" else torch.full((3,), 1 / 3, dtype=torch.float64)
    for lag in (1, 3):
        rows = tokens[batch.truth["lag"] == lag]
        first = torch.bincount(rows[:, :lag].flatten(), minlength=3).double()
        assert float((first / first.sum() - probs).abs().max()) < 0.03
        now, later = rows[:, :-lag].flatten(), rows[:, lag:].flatten()
        for state in range(3):
            follow = torch.bincount(later[now == state], minlength=3).double()
            assert float((follow / follow.sum() - table[state]).abs().max()) < 0.02


def test_oracle_is_the_ratio_of_probabilities_summed_over_lags():
    world = InterleavedChains.random(2, seed=4, lags=(1, 2, 4), length=6)
    table, probs = world.chain.table.tolist(), world.chain.stationary().tolist()

    def probability(tokens: tuple[int, ...]) -> float:
        total = 0.0
        for lag in (1, 2, 4):
            weight = 1 / 3
            for t, token in enumerate(tokens):
                weight *= probs[token] if t < lag else table[tokens[t - lag]][token]
            total += weight
        return total

    strings = list(itertools.product(range(2), repeat=6))
    best = world.oracle(next_token_batch(torch.tensor([(*s, 0) for s in strings]))).exp()
    for string, rows in zip(strings, best):
        for t in range(6):
            prefix = string[: t + 1]
            assert float(rows[t, 1]) == pytest.approx(probability((*prefix, 1)) / probability(prefix), abs=1e-12)


def test_posterior_finds_the_lag_as_the_sequence_grows():
    world = InterleavedChains(kernel=((0.9, 0.1), (0.2, 0.8)), lags=(1, 2, 3), length=128)
    batch = world.sample(500, rng=rng(1))
    posterior = world.lag_posterior(batch.inputs)
    right = posterior.argmax(-1) == (batch.truth["lag"] - 1).unsqueeze(-1)
    accuracy = right.double().mean(0)
    assert float(accuracy[0]) < 0.5 < float(accuracy[20]) < float(accuracy[-1])
    assert float(accuracy[-1]) > 0.95


def test_the_mixture_over_lags_beats_every_single_lag():
    world = InterleavedChains(length=40)
    batch = world.sample(3000, rng=rng(2))
    losses = {name: float(cross_entropy(f(batch), batch)) for name, f in world.baselines().items()}
    assert {"uniform", "unigram", "any lag", "lag 1", "lag 2", "lag 3"} == set(losses)
    assert all(world.optimal_loss(batch) < loss for loss in losses.values())


@pytest.mark.parametrize(
    "options", [{"lags": ()}, {"lags": (0,)}, {"length": 2}, {"start": "cold"}, {"kernel": (((0.5, 0.5),) * 2,) * 2}]
)
def test_impossible_worlds_are_refused(options):
    with pytest.raises(BadInput):
        InterleavedChains(**options)
