"""Sampled Bayes predictions against quadrature, against 10⁶ kernels of the prior, and against other predictors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from sandlab import BadInput, rng
from sandlab.worlds.base import Batch
from sandlab.worlds.markov.causal_graphs import InContextTree, chain_parents, pair_parents, random_parents
from sandlab.worlds.markov.chain import InContextMarkov
from sandlab.worlds.markov.posterior import stationary_bayes
from sandlab.worlds.ngrams.in_context import InContextNgrams

PARTICLES = 300_000


def prior(states: int, rows: int, alpha: float) -> np.ndarray:
    """Kernels of the prior by NumPy's own Dirichlet sampler: (particle, row, state)."""
    return np.random.default_rng(7).dirichlet([alpha] * states, (PARTICLES, rows))


def stationary(kernels: np.ndarray) -> np.ndarray:
    """π by the Markov chain tree theorem, three states: π_i is the sum over spanning trees directed into i."""
    k = np.moveaxis(kernels, 0, -1)
    trees = []
    for i in range(3):
        a, b = (j for j in range(3) if j != i)
        trees.append(k[a, i] * k[b, i] + k[a, b] * k[b, i] + k[b, a] * k[a, i])
    return np.stack(trees) / sum(trees)


def posterior_mean(likelihood: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Self-normalised importance sampling: the weighted mean of rows (particle, state) and its standard error."""
    weight = likelihood / likelihood.sum()
    mean = weight @ row
    return mean, np.sqrt((weight[:, None] ** 2 * (row - mean) ** 2).sum(0))


def agree(found: torch.Tensor, error: torch.Tensor, truth: np.ndarray, other: np.ndarray) -> bool:
    gap = np.abs(found.exp().numpy() - truth)
    bar = np.sqrt(error.numpy() ** 2 + other**2)
    return bool((gap < 4.5 * bar + 1e-6).all() and bar.max() < 0.02)


def bayes(world, tokens: list[list[int]], particles: int = 20_000):
    inputs = torch.tensor(tokens)
    batch = Batch(inputs, inputs, torch.ones_like(inputs, dtype=torch.bool))
    return stationary_bayes(world, batch, particles=particles, rng=rng(1))


def test_a_tree_of_three_states_agrees_with_many_kernels_of_the_prior():
    parents = (-1, -1, 0, -1, 2, -1)
    words = [[0, 0, 1, 2, 1, 0], [0, 1, 2, 2, 0, 1], [2, 2, 2, 2, 2, 2], [0, 1, 0, 2, 1, 2], [1, 1, 1, 0, 1, 0]]
    kernels = prior(3, 3, 0.5)
    pi = stationary(kernels)
    found = bayes(InContextTree(3, parents, 0.5), words)
    for number, word in enumerate(words):
        likelihood = np.prod([pi[word[root]] for root in (0, 1, 3)], 0)
        for child, parent in ((2, 0), (4, 2)):
            likelihood = likelihood * kernels[:, word[parent], word[child]]
        assert agree(
            found.log_probs[number, 0], found.error[number, 0], *posterior_mean(likelihood, kernels[:, word[-1]])
        )


def test_a_chain_of_three_states_agrees_with_many_kernels_of_the_prior_at_every_position():
    words = [[0, 1, 1, 2], [2, 2, 2, 2], [0, 1, 0, 1]]
    kernels = prior(3, 3, 0.3)
    pi = stationary(kernels)
    found = bayes(InContextMarkov(3, 1, 4, 0.3, "stationary"), words)
    soft = bayes(InContextNgrams(3, 1, 4, 0.3, "stationary"), words)
    for number, word in enumerate(words):
        likelihood = pi[word[0]]
        for time in range(4):
            likelihood = likelihood * kernels[:, word[time - 1], word[time]] if time else likelihood
            truth = posterior_mean(likelihood, kernels[:, word[time]])
            assert agree(found.log_probs[number, time], found.error[number, time], *truth)
        assert agree(soft.log_probs[number, 0], soft.error[number, 0], *truth)


def test_order_two_agrees_with_many_kernels_of_the_prior_before_and_after_the_first_context():
    kernels = prior(2, 4, 0.5)
    a, b, c, d = (kernels[:, row, 1] for row in range(4))
    # Windows xy have the number 2x + y. What flows in flows out: π₀₀ a = π₁₀ (1 − c), π₁₁ (1 − d) = π₀₁ b, π₀₁ = π₁₀.
    ratio00, ratio11 = (1 - c) / np.maximum(a, 1e-12), b / np.maximum(1 - d, 1e-12)
    total = ratio00 + 2 + ratio11
    pi = np.stack([ratio00, np.ones_like(a), np.ones_like(a), ratio11]) / total
    words = [list(word) for word in itertools.product((0, 1), repeat=3)]
    found = bayes(InContextMarkov(2, 2, 3, 0.5, "stationary"), words)
    for number, (x, y, z) in enumerate(words):
        first = pi[2 * x] + pi[2 * x + 1]
        assert agree(
            found.log_probs[number, 0],
            found.error[number, 0],
            *posterior_mean(first, np.stack([pi[2 * x], pi[2 * x + 1]], 1) / first[:, None]),
        )
        assert agree(
            found.log_probs[number, 1],
            found.error[number, 1],
            *posterior_mean(pi[2 * x + y], kernels[:, 2 * x + y]),
        )
        seen = pi[2 * x + y] * kernels[:, 2 * x + y, z]
        assert agree(found.log_probs[number, 2], found.error[number, 2], *posterior_mean(seen, kernels[:, 2 * y + z]))


def test_two_states_agree_with_the_quadrature():
    worlds = [InContextMarkov(2, 1, 6, 0.5, "stationary"), InContextTree(2, random_parents(9, 4), 0.5)]
    for world in worlds:
        batch = world.sample(40, rng=rng(3))
        found = stationary_bayes(world, batch, particles=20_000, rng=rng(4))
        gap = (found.log_probs.exp() - world.oracle(batch).exp()).abs()
        assert bool((gap < 4.5 * found.error + 1e-9).all()) and float(found.error.max()) < 0.01


@pytest.mark.gate(2)
@pytest.mark.parametrize(
    "world",
    [
        InContextTree(3, pair_parents(11), 0.1),
        InContextTree(3, chain_parents(8), 0.3),
        InContextMarkov(3, 1, 5, 0.3, "stationary"),
        InContextNgrams(3, 1, 4, 0.3, "stationary"),
    ],
    ids=["pairs", "tree chain", "chain", "n-grams"],
)
def test_no_predictor_is_better_than_the_sampled_bayes_prediction(world):
    batch = world.sample(1500, rng=rng(5))
    found = stationary_bayes(world, batch, particles=2000, rng=rng(6)).log_probs

    def losses(log_probs: torch.Tensor) -> torch.Tensor:
        if batch.soft:
            return -(batch.targets * log_probs).sum(-1).mean(-1)
        return -log_probs.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1).mean(-1)

    best = losses(found)
    tried = {name: predict(batch) for name, predict in world.baselines().items()}
    counted = tried["graph"] if "graph" in tried else tried["bigram"]
    uniform = torch.full_like(counted, 1 / world.states)
    for share in (0.02, 0.1, 0.3):
        tried[f"counts, {share} uniform"] = ((1 - share) * counted.exp() + share * uniform).log()
    for power in (0.7, 0.9, 1.1):
        tried[f"counts to the {power}"] = (power * counted).log_softmax(-1)
        tried[f"Bayes to the {power}"] = (power * found).log_softmax(-1)
    worse = {name: losses(log_probs) - best for name, log_probs in tried.items()}
    for name, gap in worse.items():
        assert float(gap.mean()) > -2.5 * float(gap.std()) / len(gap) ** 0.5, name
    # The counting estimator is what used to be called the oracle: it is worse, clearly.
    gap = worse["graph" if "graph" in worse else "bigram"]
    assert float(gap.mean()) > 2.5 * float(gap.std()) / len(gap) ** 0.5


def test_long_sequences_leave_nothing_to_correct():
    world = InContextMarkov(3, 1, 200, 1.0, "stationary")
    batch = world.sample(3, rng=rng(8))
    found = stationary_bayes(InContextNgrams(3, 1, 200, 1.0, "stationary"), batch, particles=1000, rng=rng(9))
    counted = world.baselines()["bigram"](batch)[:, -1:]
    assert float((found.log_probs.exp() - counted.exp()).abs().max()) < 0.02
    assert float(found.error.max()) < 2e-3


def test_uniform_starts_have_an_exact_oracle_and_are_refused():
    world = InContextMarkov(3, 1, 4, 0.3)
    with pytest.raises(BadInput, match="stationary"):
        stationary_bayes(world, world.sample(2, rng=rng(0)), rng=rng(0))
