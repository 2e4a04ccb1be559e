"""Laws of windows and of fewer tokens, against enumeration and against long samples."""

from __future__ import annotations

import itertools

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.worlds.markov._walk import dirichlet_rows
from sandlab.worlds.markov.chain import MarkovChain
from sandlab.worlds.markov.lifted import (
    conditional_distribution,
    lifted_chain,
    order_of,
    positive_stationary_distribution,
    stationary_distribution,
    token_distribution,
    window_distribution,
)
from sandlab.worlds.ngrams.estimators import CountingEstimator


@pytest.mark.parametrize(("states", "order"), [(2, 2), (3, 2), (2, 3), (4, 1)])
def test_stationary_distribution_is_unchanged_by_a_step_and_its_windows_are_shift_invariant(states, order):
    kernels = dirichlet_rows((30, states**order, states), 0.5, rng=rng(0))
    probs = stationary_distribution(kernels)
    step = (probs.unsqueeze(1) @ lifted_chain(kernels)).squeeze(1)
    assert float((step - probs).abs().max()) < 1e-12
    joint = window_distribution(kernels).reshape(30, *[states] * (order + 1))
    assert torch.allclose(joint.sum(1).flatten(1), probs, atol=1e-12)
    assert torch.allclose(joint.sum(-1).flatten(1), probs, atol=1e-12)
    assert torch.allclose(token_distribution(kernels), probs.reshape(30, states, -1).sum(-1), atol=1e-12)


def test_power_iteration_reaches_the_same_distribution():
    kernel = dirichlet_rows((27, 3), 1.0, rng=rng(2))
    matrix = lifted_chain(kernel)
    probs = torch.full((27,), 1 / 27, dtype=torch.float64)
    for _ in range(2000):
        probs = probs @ matrix
    assert torch.allclose(probs, stationary_distribution(kernel), atol=1e-12)


@pytest.mark.parametrize(("states", "concentration"), [(3, 1.0), (10, 0.1), (12, 0.5)])
def test_elimination_alone_finds_the_law_of_kernels_without_zeros(states, concentration):
    kernels = dirichlet_rows((500, states, states), concentration, rng=rng(3))
    probs = positive_stationary_distribution(kernels)
    step = (probs.unsqueeze(1) @ kernels).squeeze(1)
    assert float((step - probs).abs().max()) < 1e-12
    assert torch.allclose(probs.sum(-1), torch.ones(500, dtype=torch.float64))


@pytest.mark.parametrize("lags", [(), (1,), (2,), (1, 2), (1, 3), (2, 3), (1, 2, 3)])
def test_conditional_distribution_sums_over_every_window_that_agrees(lags):
    kernel = dirichlet_rows((8, 2), 1.0, rng=rng(1))
    probs = stationary_distribution(kernel)
    rows = conditional_distribution(kernel, lags)
    assert rows.shape == (2 ** len(lags), 2)
    ordered = sorted(lags, reverse=True)
    for number, given in enumerate(itertools.product(range(2), repeat=len(lags))):
        weight = torch.zeros(2, dtype=torch.float64)
        for code, window in enumerate(itertools.product(range(2), repeat=3)):
            if all(window[3 - lag] == token for lag, token in zip(ordered, given)):
                weight += probs[code] * kernel[code]
        assert torch.allclose(rows[number], weight / weight.sum(), atol=1e-14)


@pytest.mark.parametrize("lags", [(), (1,), (2,), (1, 2)])
def test_counting_estimators_converge_to_the_conditional_distributions(lags):
    chain = MarkovChain.random(3, 2, length=100_000, seed=5)
    batch = chain.sample(1, rng=rng(0))
    counted = CountingEstimator(3, lags).probabilities(batch.inputs)[0, -1]
    ordered = sorted(lags, reverse=True)
    number = 0
    for lag in ordered:
        number = number * 3 + int(batch.inputs[0, -lag])
    assert float((counted - chain.conditional(lags)[number]).abs().max()) < 0.02


def test_kernels_of_no_whole_order_and_lags_beyond_the_order_are_refused():
    with pytest.raises(BadInput, match="power"):
        order_of(torch.full((6, 2), 0.5))
    with pytest.raises(BadInput, match="lag"):
        conditional_distribution(torch.full((4, 2), 0.5), (3,))
