"""Row samplers have exactly the distributions they were made from."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sandlab import rng
from sandlab.worlds._row_sampler import RowSampler, _alias_tables
from sandlab.worlds.markov._walk import dirichlet_rows, shared_walk, walk
from sandlab.worlds.markov.bigram_text import BigramBackcopy, BigramTrigger
from sandlab.worlds.markov.interleaved import InterleavedChains


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.sampled_from([0.0, 1e-9, 0.1, 1.0, 7.0]), min_size=1, max_size=9).filter(lambda w: sum(w) > 0)
)
def test_alias_tables_add_up_to_the_distribution(weights):
    probs = torch.tensor([weights], dtype=torch.float64)
    probs = probs / probs.sum()
    keep, alias = _alias_tables(probs.numpy())
    states = len(weights)
    mass = [0.0] * states
    for column in range(states):
        mass[column] += max(keep[0, column], 0.0) / states
        mass[alias[0, column]] += (1 - max(keep[0, column], 0.0)) / states
    assert mass == pytest.approx(probs[0].tolist(), abs=1e-12)
    for state, weight in enumerate(weights):
        if weight == 0.0:
            assert mass[state] <= 1e-15


@pytest.mark.parametrize("states", [2, 3, 4, 20])
def test_draws_have_the_frequencies_of_their_rows(states):
    probs = dirichlet_rows((4, states), 0.3, rng=rng(0))
    sampler = RowSampler(probs)
    (numbers,) = sampler.numbers(1, 200_000, rng(1))
    for row in range(4):
        drawn = torch.from_numpy(sampler.draw(np.full(200_000, row), *numbers)).long()
        frequency = torch.bincount(drawn, minlength=states).double() / 200_000
        assert float((frequency - probs[row]).abs().max()) < 0.006


@pytest.mark.parametrize("states", [3, 5])
@pytest.mark.parametrize("lags", [(1,), (1, 2), (1, 3)])
def test_walks_of_one_kernel_have_the_same_distribution_either_way(lags, states):
    kernel = dirichlet_rows((states ** len(lags), states), 1.0, rng=rng(2))
    start = torch.randint(0, states, (60_000, max(lags)), generator=rng(3))
    one = shared_walk(RowSampler(kernel), start, 6, lags, rng=rng(4))
    two = walk(kernel.unsqueeze(0), start, 6, lags, rng=rng(5))
    codes = [(tokens[:, -2:] * torch.tensor([states, 1])).sum(-1) for tokens in (one, two)]
    frequencies = [torch.bincount(code, minlength=states**2).double() / 60_000 for code in codes]
    assert float((frequencies[0] - frequencies[1]).abs().max()) < 0.01
    assert torch.equal(one[:, : max(lags)], start)


@pytest.mark.parametrize(
    "world",
    [
        BigramTrigger(states=5, length=20, random_triggers=True),
        BigramBackcopy(states=6, length=20),
        InterleavedChains(length=20),
        InterleavedChains.random(5, length=20),
    ],
    ids=repr,
)
def test_the_loops_of_both_array_libraries_walk_alike(world, monkeypatch):
    numpy_tokens = world.sample(100, rng=rng(0)).inputs
    monkeypatch.setattr(RowSampler, "on_cpu", property(lambda self: False))
    fresh = dataclasses.replace(world)
    assert torch.equal(fresh.sample(100, rng=rng(0)).inputs, numpy_tokens)
