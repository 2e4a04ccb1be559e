"""Causal trees and graphs: samples follow their edges, oracles are posterior means."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.special import gammaln

from sandlab import BadInput, rng
from sandlab.worlds.base import cross_entropy
from sandlab.worlds.markov.causal_graphs import (
    InContextDag,
    InContextTree,
    chain_parents,
    lag_parents,
    pair_parents,
    random_parents,
    skip_parents,
)
from sandlab.worlds.markov.lifted import stationary_distribution
from sandlab.worlds.ngrams.estimators import CountingEstimator

GRAPHS = {"chain": chain_parents(9), "pairs": pair_parents(9), "random": random_parents(9, 4)}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("roots", ["stationary", "uniform"])
def test_children_follow_the_kernel_and_roots_their_distribution(graph, roots):
    world = InContextTree(3, GRAPHS[graph], concentration=0.5, roots=roots)
    batch = world.sample(30_000, rng=rng(0))
    kernels, everyone = batch.truth["kernels"], torch.arange(30_000)
    for position, parent in enumerate(world.parents):
        probs = torch.full((30_000, 3), 1 / 3, dtype=torch.float64)
        if position < 8 and parent >= 0:
            probs = kernels[everyone, batch.inputs[:, parent]]
        elif position < 8 and roots == "stationary":
            probs = stationary_distribution(kernels)
        gap = torch.nn.functional.one_hot(batch.inputs[:, position], 3) - probs
        # The error is unpredictable from the distribution itself and from the kernel.
        assert float(gap.mean(0).abs().max()) < 0.015
        assert float((gap * probs).mean(0).abs().max()) < 0.015
        assert float((gap * kernels[:, 0]).mean(0).abs().max()) < 0.015


def test_target_is_the_row_of_the_last_token():
    batch = InContextTree(4, random_parents(7, 1)).sample(20, rng=rng(1))
    for tokens, kernel, probs in zip(batch.inputs, batch.truth["kernels"], batch.targets):
        assert torch.equal(probs[0], kernel[tokens[-1]])


@pytest.mark.parametrize("states", [2, 3])
def test_tree_oracle_with_uniform_roots_is_the_posterior_mean(states):
    alpha = 0.7
    world = InContextTree(states, random_parents(6, 3), alpha, roots="uniform")
    batch = world.sample(10, rng=rng(2))
    best = world.oracle(batch)[:, 0].exp()

    def evidence(counts: np.ndarray) -> float:
        row = gammaln(states * alpha) - gammaln(states * alpha + counts.sum(-1))
        return float((row + (gammaln(alpha + counts) - gammaln(alpha)).sum(-1)).sum())

    for tokens, probs in zip(batch.inputs.tolist(), best):
        counts = np.zeros((states, states))
        for child, parent in world.edges:
            counts[tokens[parent], tokens[child]] += 1
        for a in range(states):
            more = counts.copy()
            more[tokens[-1], a] += 1
            assert float(probs[a]) == pytest.approx(np.exp(evidence(more) - evidence(counts)), abs=1e-12)


def test_binary_tree_oracle_integrates_what_stationary_roots_say():
    world = InContextTree(2, (-1, -1, 0, -1, 1, -1), concentration=2.0)
    tokens = torch.tensor(list(itertools.product(range(2), repeat=6)))
    batch = world.sample(len(tokens), rng=rng(0))
    best = world.oracle(type(batch)(tokens, batch.targets, batch.mask))[:, 0].exp()
    # Monte Carlo over the prior: E[P(1|s) · likelihood]/E[likelihood].
    generator = np.random.default_rng(0)
    p, q = generator.beta(2, 2, (2, 400_000))
    rows = np.stack([np.stack([1 - p, p]), np.stack([q, 1 - q])])
    start = np.stack([q, p]) / (p + q)
    for example in range(0, 64, 7):
        x = tokens[example].tolist()
        likelihood = start[x[0]] * start[x[1]] * start[x[3]] * rows[x[0], x[2]] * rows[x[1], x[4]]
        truth = (likelihood * rows[x[5], 1]).mean() / likelihood.mean()
        assert float(best[example, 1]) == pytest.approx(truth, abs=3e-3)


def test_counting_along_the_graph_beats_every_other_baseline():
    world = InContextTree(3, pair_parents(21), concentration=0.3)
    batch = world.sample(4000, rng=rng(0))
    losses = {name: float(cross_entropy(f(batch), batch)) for name, f in world.baselines().items()}
    assert losses["uniform"] == pytest.approx(np.log(3))
    assert min(losses, key=losses.__getitem__) == "graph"


def test_a_chain_of_any_order_is_a_graph():
    world = InContextDag(3, lag_parents(30, (1, 2)), concentration=0.5)
    batch = world.sample(200, rng=rng(0))
    counted = CountingEstimator(3, (1, 2), smoothing=0.5)(batch)[:, -1]
    assert torch.allclose(world.oracle(batch)[:, 0], counted, atol=1e-12)


@pytest.mark.parametrize("parents", [skip_parents(8), lag_parents(8, (1, 3)), lag_parents(8, (2,))])
def test_graph_children_follow_the_row_of_their_parents(parents):
    world = InContextDag(2, parents, concentration=0.5)
    batch = world.sample(20_000, rng=rng(1))
    kernels, everyone = batch.truth["kernels"], torch.arange(20_000)
    for child in world.children:
        number = sum(batch.inputs[:, parent] * 2**i for i, parent in enumerate(parents[child]))
        probs = kernels[everyone, number]
        gap = torch.nn.functional.one_hot(batch.inputs[:, child], 2) - probs
        assert float(gap.mean(0).abs().max()) < 0.015 and float((gap * probs).mean(0).abs().max()) < 0.015
    query = sum(batch.inputs[:, parent] * 2**i for i, parent in enumerate(parents[-1]))
    assert torch.equal(batch.targets[:, 0], kernels[everyone, query])


def test_graph_oracle_beats_each_parent_alone():
    world = InContextDag(3, skip_parents(40), concentration=0.2)
    batch = world.sample(3000, rng=rng(0))
    losses = {name: float(cross_entropy(f(batch), batch)) for name, f in world.baselines().items()}
    assert set(losses) == {"uniform", "unigram", "parent 0", "parent 1", "graph"}
    assert min(losses, key=losses.__getitem__) == "graph"


def test_graph_families_have_their_shapes():
    assert chain_parents(4) == (-1, 0, 1, 2)
    assert pair_parents(5) == (-1, 0, -1, 2, -1)
    assert skip_parents(4) == ((), (), (1, 0), (2, 1), (3, 1))
    assert lag_parents(3, (1, 2)) == ((), (), (1, 0), (2, 1))
    assert random_parents(30, 1) == random_parents(30, 1) != random_parents(30, 2)
    assert all(-1 <= parent < position for position, parent in enumerate(random_parents(200, 0)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: InContextTree(3, (-1, 1)),
        lambda: InContextTree(3, (-1,)),
        lambda: InContextTree(3, (-1, 0), roots="random"),
        lambda: InContextDag(3, ((), (0,), (0, 1))),
        lambda: InContextDag(3, ((), ())),
        lambda: InContextDag(3, ((), (1,))),
    ],
)
def test_impossible_graphs_are_refused(make):
    with pytest.raises(BadInput):
        make()
