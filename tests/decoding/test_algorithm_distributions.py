"""Every algorithm's empirical distribution against its exact distribution on random trees, by chi-square at level 1e-3.

Ten thousand runs on small trees, enough to notice a wrong law; under `make test-full` a hundred thousand runs on trees
of depth 6.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
import torch
from scipy import stats

import sandlab as sl
from sandlab.decoding._session.session import Status
from sandlab.decoding.decoders.adaptive import AdaptiveRejection
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.blocks import BlockBestOfN
from sandlab.decoding.decoders.rejection import BestOfN, EarlyAbort, ExhaustiveSearch, Rejection, TokenwiseRejection
from sandlab.decoding.decoders.sampling import Greedy, Nucleus, Temperature
from sandlab.decoding.decoders.walks import VGB, SinclairJerrum, ValueGuided
from sandlab.decoding.exact.distributions import (
    backtracking_distribution,
    best_of_n_distribution,
    block_best_of_n_distribution,
    restricted_distribution,
    sampling_distribution,
    tokenwise_distribution,
    value_guided_distribution,
)
from sandlab.decoding.exact.trees import TableVerifier, Tree, TreeGenerator, node_numbers
from sandlab.decoding.exact.walks import TreeWalk, first_leaf_distribution
from sandlab.decoding.text import decoder_names

Levels = list[np.ndarray]


@dataclass(frozen=True, eq=False)
class Instance:
    """A random tree, a 0/1 set of accepted leaves that leaves some subtrees empty, and numbers of its nodes.

    noisy      exact values times log-normal errors, exact at the leaves
    evidence   about each node's last token: near 1, so that products along a path do not vanish
    """

    tree: Tree
    accepted: np.ndarray
    noisy: Levels = field(repr=False)
    evidence: Levels = field(repr=False)

    @property
    def verdicts(self) -> Levels:
        return self.tree.verdicts(self.accepted)

    @property
    def positive(self) -> Levels:
        """Noisy values without zeros: no string can get stuck."""
        return [np.maximum(level, 0.01) for level in self.noisy]

    @property
    def bounded(self) -> Levels:
        """Positive noisy values of at most 1, which can be probabilities of acceptance."""
        return [np.clip(level, 0.05, 1.0) for level in self.noisy]

    @property
    def scores(self) -> np.ndarray:
        """Scores of the leaves with many ties."""
        return np.round(self.noisy[-1] + np.arange(len(self.accepted)) % 3)


@cache
def instance(tokens: int, depth: int) -> Instance:
    tree = Tree.random(tokens, depth, rng=sl.rng(tokens, "probs", depth))
    chance = np.random.default_rng((tokens, depth))
    accepted = (chance.uniform(size=tokens**depth) < 0.4).astype(float)
    accepted[-1] = 1.0
    noisy = [value * np.exp(0.7 * chance.normal(size=value.shape)) for value in tree.values(accepted)]
    evidence = [chance.uniform(0.6, 1.2, size=value.shape) for value in noisy]
    return Instance(tree, accepted, [*noisy[:-1], accepted], evidence)


# -- exact tables that are not those of one formula --------------------------------------------------------------------


def sharpened(tree: Tree, temperature: float, top_p: float) -> Tree:
    """Every distribution of the tree by temperature and nucleus, one distribution at a time."""

    def one(probs: np.ndarray) -> np.ndarray:
        sharp = probs ** (1 / temperature) / (probs ** (1 / temperature)).sum()
        order = np.argsort(-sharp)
        kept = order[: int(np.argmax(np.cumsum(sharp[order]) > top_p)) + 1] if top_p < 1 else order
        cut = np.zeros_like(sharp)
        cut[kept] = sharp[kept]
        return cut / cut.sum()

    return Tree(tuple(np.stack([one(probs) for probs in tables]) for tables in tree.probs))


def constrained(tree: Tree, values: Levels) -> Tree:
    """Every distribution restricted to children of positive value; where there is none, it does not matter."""
    tables = []
    for probs, below in zip(tree.probs, values[1:]):
        kept = probs * (below.reshape(probs.shape) > 0)
        total = kept.sum(1, keepdims=True)
        tables.append(np.where(total > 0, kept / np.where(total > 0, total, 1), probs))
    return Tree(tuple(tables))


def along_paths(values: Levels, tokens: int) -> Levels:
    """V(y) as the product of the numbers of y's prefixes, the root's left out; complete strings keep their own."""
    products = [np.ones(1)]
    for level in values[1:-1]:
        products.append(np.repeat(products[-1], tokens) * level)
    return [*products, values[-1]]


def greedy_distribution(tree: Tree) -> np.ndarray:
    node = 0
    for tables in tree.probs:
        node = node * tree.tokens + int(tables[node].argmax())
    return np.eye(1, tree.tokens**tree.depth, node).ravel()


def first_accepted(each: Instance) -> np.ndarray:
    return np.eye(1, len(each.accepted), int(np.flatnonzero(each.accepted)[0])).ravel()


def uniform(tree: Tree) -> Tree:
    return Tree.uniform(tree.tokens, tree.depth)


# -- the algorithms --------------------------------------------------------------------------------------------------

RUNS = 10_000
Law = Callable[[Instance], np.ndarray]
Say = Callable[[Instance], Levels | None]


@dataclass(frozen=True)
class Case:
    """An algorithm, what its verifier says, and its exact distribution over the leaves or over all nodes."""

    decoder: sl.decoding.Decoder
    says: Say
    probs: Law


def nothing(each: Instance) -> None:
    return None


def verdicts(each: Instance) -> Levels:
    return each.verdicts


def noisy(each: Instance) -> Levels:
    return each.noisy


def backtracking(**options) -> Case:
    return Case(
        Backtracking(**options), verdicts, lambda each: backtracking_distribution(each.tree, each.verdicts, **options)
    )


CASES = {
    "greedy": Case(Greedy(), nothing, lambda each: greedy_distribution(each.tree)),
    "plain sampling": Case(Temperature(), nothing, lambda each: sampling_distribution(each.tree)),
    "temperature": Case(
        Temperature(temperature=0.6), nothing, lambda each: sampling_distribution(sharpened(each.tree, 0.6, 1))
    ),
    "high temperature": Case(
        Temperature(temperature=1.7), nothing, lambda each: sampling_distribution(sharpened(each.tree, 1.7, 1))
    ),
    "nucleus": Case(Nucleus(top_p=0.8), nothing, lambda each: sampling_distribution(sharpened(each.tree, 1, 0.8))),
    "temperature and nucleus": Case(
        Nucleus(top_p=0.7, temperature=1.3), nothing, lambda each: sampling_distribution(sharpened(each.tree, 1.3, 0.7))
    ),
    "best of 2": Case(
        BestOfN(candidates=2),
        lambda each: [*each.noisy[:-1], each.scores],
        lambda each: best_of_n_distribution(each.tree, each.scores, 2),
    ),
    "best of 5": Case(
        BestOfN(candidates=5),
        lambda each: [*each.noisy[:-1], each.scores],
        lambda each: best_of_n_distribution(each.tree, each.scores, 5),
    ),
    "rejection": Case(Rejection(), verdicts, lambda each: restricted_distribution(each.tree, each.accepted)),
    "early abort": Case(EarlyAbort(), verdicts, lambda each: restricted_distribution(each.tree, each.accepted)),
    "tokenwise rejection": Case(
        TokenwiseRejection(max_draws=10**6), verdicts, lambda each: tokenwise_distribution(each.tree, each.verdicts)
    ),
    "exhaustive search": Case(ExhaustiveSearch(), verdicts, first_accepted),
    "best of 2 by blocks of 2": Case(
        BlockBestOfN(candidates=2, block=2),
        noisy,
        lambda each: block_best_of_n_distribution(each.tree, each.noisy, 2, 2),
    ),
    "best of 3 token by token": Case(
        BlockBestOfN(candidates=3, block=1),
        noisy,
        lambda each: block_best_of_n_distribution(each.tree, each.noisy, 3, 1),
    ),
    "backtracking": backtracking(quota=3, stride=2),
    "backtracking, quota 1, stride 1": backtracking(quota=1, stride=1),
    "backtracking further than the string": backtracking(quota=2, stride=4),
    "backtracking without argmax": backtracking(quota=3, stride=2, redo="none"),
    "backtracking as released": backtracking(quota=3, stride=2, redo="released"),
    "backtracking, checked before": backtracking(quota=3, stride=2, check="before"),
    "backtracking, checked before, without argmax": backtracking(quota=2, stride=1, check="before", redo="none"),
    "backtracking with nucleus": Case(
        Backtracking(quota=3, stride=2, top_p=0.9),
        verdicts,
        lambda each: backtracking_distribution(sharpened(each.tree, 1, 0.9), each.verdicts, quota=3, stride=2),
    ),
    "value-guided": Case(
        ValueGuided(), lambda each: each.positive, lambda each: value_guided_distribution(each.tree, each.positive)
    ),
    "walk, first leaf": Case(VGB(), noisy, lambda each: first_leaf_distribution(each.tree, each.noisy)),
    "value-guided, children sampled": Case(
        ValueGuided(children="sampled"),
        lambda each: each.bounded,
        lambda each: value_guided_distribution(each.tree, each.bounded),
    ),
    "walk, children sampled": Case(
        VGB(children="sampled"),
        lambda each: each.bounded,
        lambda each: first_leaf_distribution(each.tree, each.bounded),
    ),
    "adaptive rejection": Case(
        AdaptiveRejection(), verdicts, lambda each: restricted_distribution(each.tree, each.accepted)
    ),
    "walk, first leaf, exact values": Case(
        VGB(),
        lambda each: each.tree.values(each.accepted),
        lambda each: restricted_distribution(each.tree, each.accepted),
    ),
    "walk, last node": Case(
        VGB(returns="final", max_steps=25), noisy, lambda each: TreeWalk(each.tree, each.noisy).distribution_after(25)
    ),
    "walk, uniform time": Case(
        VGB(returns="uniform-time", max_steps=40, restarts=2000),
        noisy,
        lambda each: TreeWalk(each.tree, each.noisy).uniform_time_leaf_distribution(40),
    ),
    "walk on the constrained model": Case(
        VGB(base="constrained"),
        verdicts,
        lambda each: first_leaf_distribution(constrained(each.tree, each.verdicts), each.verdicts),
    ),
    "walk on the constrained model, noisy values": Case(
        VGB(base="constrained"),
        noisy,
        lambda each: first_leaf_distribution(constrained(each.tree, each.noisy), each.noisy),
    ),
    "walk with values along the path": Case(
        VGB(values="path"),
        lambda each: each.evidence,
        lambda each: first_leaf_distribution(each.tree, along_paths(each.evidence, each.tree.tokens)),
    ),
    "walk with the same values at nodes": Case(
        VGB(), lambda each: each.evidence, lambda each: first_leaf_distribution(each.tree, each.evidence)
    ),
    "constrained walk with values along the path, last node": Case(
        VGB(base="constrained", values="path", returns="final", max_steps=25),
        noisy,
        lambda each: TreeWalk(
            constrained(each.tree, each.noisy), along_paths(each.noisy, each.tree.tokens)
        ).distribution_after(25),
    ),
    "Sinclair-Jerrum": Case(
        SinclairJerrum(),
        lambda each: uniform(each.tree).values(each.accepted),
        lambda each: each.accepted / each.accepted.sum(),
    ),
    "Sinclair-Jerrum, noisy counts": Case(
        SinclairJerrum(), noisy, lambda each: first_leaf_distribution(uniform(each.tree), each.noisy)
    ),
    "Sinclair-Jerrum, last node": Case(
        SinclairJerrum(returns="final", max_steps=25),
        noisy,
        lambda each: TreeWalk(uniform(each.tree), each.noisy).distribution_after(25),
    ),
    "Sinclair-Jerrum, constrained": Case(
        SinclairJerrum(base="constrained"),
        verdicts,
        lambda each: first_leaf_distribution(constrained(uniform(each.tree), each.verdicts), each.verdicts),
    ),
}


def node_counts(case: Case, each: Instance, runs: int, seed: int) -> np.ndarray:
    """How often each node, shortest first, was returned."""
    tree, says = each.tree, case.says(each)
    done = case.decoder.generate(
        TreeGenerator(tree),
        torch.zeros(runs, 0, dtype=torch.long),
        verifier=None if says is None else TableVerifier(says, tree.tokens),
        max_new=tree.depth,
        rng=sl.rng(seed),
    )
    assert bool((done.status == Status.DONE).all())
    nodes = sum(tree.tokens**level for level in range(tree.depth + 1))
    return np.bincount(node_numbers(done.tokens, done.lengths, tree.tokens).numpy(), minlength=nodes)


def assert_follows(counts: np.ndarray, probs: np.ndarray) -> None:
    """Chi-square at level 1e-3, nodes with fewer than 5 expected runs taken together; nothing outside the support."""
    probs = np.append(np.zeros(len(counts) - len(probs)), probs)
    assert probs.sum() == pytest.approx(1)
    assert counts[probs < 1e-15].sum() == 0
    expected = probs * counts.sum()
    rare = expected < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    observed, expected = observed[expected > 1e-9], expected[expected > 1e-9]
    if len(expected) > 1:
        assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


def check(name: str, tokens: int, depth: int, runs: int) -> None:
    case, each = CASES[name], instance(tokens, depth)
    # A seed of its own for each algorithm: common random numbers would make all tests fail together or not at all.
    counts = node_counts(case, each, runs, zlib.crc32(f"{name} {tokens} {depth}".encode()))
    assert_follows(counts, case.probs(each))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("tokens", "depth"), [(2, 4), (3, 3)])
def test_each_algorithm_follows_its_exact_law(name, tokens, depth):
    check(name, tokens, depth, RUNS)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("tokens", "depth"), [(2, 6), (3, 6)])
def test_each_algorithm_follows_its_exact_law_over_a_hundred_thousand_runs(name, tokens, depth):
    check(name, tokens, depth, 100_000)


def test_every_registered_decoder_is_among_the_algorithms():
    tested = {type(case.decoder) for case in CASES.values()}
    assert {sl.get("decoders", name) for name in decoder_names()} <= tested


def test_a_wrong_law_is_noticed():
    """The check itself: neighbouring algorithms on the same instance are told apart."""
    each = instance(2, 4)
    for ours, other in (
        ("rejection", "tokenwise rejection"),
        ("backtracking", "backtracking as released"),
        ("backtracking", "backtracking, checked before"),
        ("walk, first leaf", "walk, uniform time"),
        ("walk on the constrained model", "rejection"),
        ("walk with values along the path", "walk with the same values at nodes"),
        ("Sinclair-Jerrum, noisy counts", "walk, first leaf"),
    ):
        counts = node_counts(CASES[ours], each, RUNS, 5)
        with pytest.raises(AssertionError):
            assert_follows(counts, CASES[other].probs(each))


@pytest.mark.parametrize(("tokens", "depth"), [(2, 6), (3, 4)])
def test_verdicts_on_the_constrained_model_are_exact_values_and_give_the_law_of_tokenwise_rejection(tokens, depth):
    each = instance(tokens, depth)
    walk = TreeWalk(constrained(each.tree, each.verdicts), each.verdicts)
    probs, steps = walk.first_leaf
    assert np.allclose(probs, tokenwise_distribution(each.tree, each.verdicts), atol=1e-12)
    assert steps == pytest.approx(2 * depth**2)
