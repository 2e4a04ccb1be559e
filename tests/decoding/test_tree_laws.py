"""Each algorithm's empirical law against its exact law (chi-square at level 1e-3): 10^5 runs under `test-full`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

import sandlab as sl
from sandlab.decoding.backtracking import Backtracking
from sandlab.decoding.blocks import BlockBestOfN
from sandlab.decoding.rejection import BestOfN, EarlyAbort, ExhaustiveSearch, Rejection, TokenwiseRejection
from sandlab.decoding.sampling import Greedy, Sampling
from sandlab.decoding.session import Status
from sandlab.decoding.tree_laws import (
    backtracking_law,
    best_of_n_law,
    block_best_of_n_law,
    divergence,
    restricted_law,
    sampling_law,
    tokenwise_law,
    total_variation,
    value_guided_law,
)
from sandlab.decoding.tree_walks import TreeWalk
from sandlab.decoding.trees import TableVerifier, Tree, TreeGenerator, node_numbers
from sandlab.decoding.walks import VGB, SinclairJerrum, ValueGuided

SHAPES = [(2, 4), (3, 3), pytest.param(2, 6, marks=pytest.mark.slow), pytest.param(3, 5, marks=pytest.mark.slow)]


def runs_for(tree: Tree) -> int:
    return 100_000 if tree.tokens**tree.depth >= 64 else 30_000


def instance(tokens: int, depth: int, seed: int = 0) -> tuple[Tree, np.ndarray, list[np.ndarray]]:
    """A random tree, a 0/1 set of accepted leaves that leaves some subtrees empty, and noisy values."""
    tree = Tree.random(tokens, depth, rng=sl.rng(seed, "tree"))
    chance = np.random.default_rng(seed)
    accepted = (chance.uniform(size=tokens**depth) < 0.4).astype(float)
    accepted[-1] = 1.0
    noisy = [value * np.exp(chance.normal(size=value.shape)) for value in tree.values(accepted)]
    noisy[-1] = accepted
    return tree, accepted, noisy


def empirical(decoder, tree: Tree, levels, seed: int = 1) -> np.ndarray:
    """Counts of each leaf over many runs; every run must end with a complete string."""
    return leaf_counts(run(decoder, tree, levels, runs_for(tree), seed), tree)


def leaf_counts(done, tree: Tree) -> np.ndarray:
    assert bool((done.status == Status.DONE).all())
    powers = torch.tensor([tree.tokens**place for place in reversed(range(tree.depth))])
    return np.bincount((done.tokens * powers).sum(1).numpy(), minlength=tree.tokens**tree.depth)


def run(decoder, tree: Tree, levels, runs: int, seed: int = 1):
    verifier = None if levels is None else TableVerifier(levels, tree.tokens)
    prompts = torch.zeros(runs, 0, dtype=torch.long)
    return decoder.generate(TreeGenerator(tree), prompts, verifier=verifier, max_new=tree.depth, rng=sl.rng(seed))


def assert_follows(counts: np.ndarray, law: np.ndarray) -> None:
    """Chi-square at level 1e-3, leaves with fewer than 5 expected runs taken together."""
    assert law.sum() == pytest.approx(1)
    assert counts[law <= 0].sum() == 0
    expected = law * counts.sum()
    rare = expected < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] == 0:
        observed, expected = observed[:-1], expected[:-1]
    if len(expected) > 1:
        assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_sampling_follows_the_product_of_conditionals(tokens, depth):
    tree, _, _ = instance(tokens, depth)
    assert_follows(empirical(Sampling(), tree, None), sampling_law(tree))


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
@pytest.mark.parametrize("decoder", [Rejection(), EarlyAbort()])
def test_rejection_follows_the_restricted_law(tokens, depth, decoder):
    tree, accepted, _ = instance(tokens, depth)
    assert_follows(empirical(decoder, tree, tree.verdicts(accepted)), restricted_law(tree, accepted))


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_tokenwise_rejection_follows_its_own_law_which_is_not_the_restricted_one(tokens, depth):
    tree, accepted, _ = instance(tokens, depth)
    law = tokenwise_law(tree, tree.verdicts(accepted))
    assert_follows(empirical(TokenwiseRejection(), tree, tree.verdicts(accepted)), law)
    assert total_variation(law, restricted_law(tree, accepted)) > 0.01
    assert divergence(restricted_law(tree, accepted), law) > 0


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
@pytest.mark.parametrize("n", [2, 5])
def test_best_of_n_follows_the_law_of_the_largest_of_n(tokens, depth, n):
    tree, _, noisy = instance(tokens, depth)
    scores = np.round(noisy[-1] + np.arange(tokens**depth) % 3)
    levels = [*noisy[:-1], scores]
    assert_follows(empirical(BestOfN(candidates=n), tree, levels), best_of_n_law(tree, scores, n))


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
@pytest.mark.parametrize(("n", "block"), [(2, 2), (3, 1)])
def test_block_best_of_n_follows_its_law(tokens, depth, n, block):
    tree, _, noisy = instance(tokens, depth)
    law = block_best_of_n_law(tree, noisy, n, block)
    assert_follows(empirical(BlockBestOfN(candidates=n, block=block), tree, noisy), law)


def test_block_best_of_n_with_one_block_is_best_of_n():
    tree, _, noisy = instance(3, 4)
    assert np.allclose(block_best_of_n_law(tree, noisy, 4, 4), best_of_n_law(tree, noisy[-1], 4))


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
@pytest.mark.parametrize(
    ("quota", "stride", "redo"), [(1, 1, "argmax"), (3, 2, "argmax"), (2, 4, "argmax"), (3, 2, "none")]
)
def test_backtracking_follows_its_law(tokens, depth, quota, stride, redo):
    tree, accepted, _ = instance(tokens, depth)
    verdicts = tree.verdicts(accepted)
    law = backtracking_law(tree, verdicts, quota=quota, stride=stride, redo=redo)
    decoder = Backtracking(quota=quota, stride=stride, redo=redo)
    assert_follows(empirical(decoder, tree, verdicts), law)


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_value_guided_sampling_follows_its_law(tokens, depth):
    tree, accepted, noisy = instance(tokens, depth)
    noisy = [np.maximum(level, 0.01) for level in noisy[:-1]] + [np.maximum(accepted, 0.01)]
    assert_follows(empirical(ValueGuided(), tree, noisy), value_guided_law(tree, noisy))


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_first_leaf_of_the_walk_follows_the_harmonic_measure(tokens, depth):
    tree, _, noisy = instance(tokens, depth)
    law, steps = TreeWalk(tree, noisy).first_leaf
    done = run(VGB(), tree, noisy, runs_for(tree))
    assert_follows(leaf_counts(done, tree), law)
    measured = done.counters["steps"].double()
    assert abs(float(measured.mean()) - steps) < 5 * float(measured.std()) / len(done) ** 0.5


@pytest.mark.parametrize(("tokens", "depth"), [(2, 3), (3, 3)])
def test_walk_stopped_at_a_fixed_time_follows_the_power_of_its_matrix(tokens, depth):
    tree, _, noisy = instance(tokens, depth)
    done = run(VGB(returns="final", max_steps=15), tree, noisy, runs_for(tree))
    law = TreeWalk(tree, noisy).law_after(15)
    counts = np.bincount(node_numbers(done.tokens, done.lengths, tokens).numpy(), minlength=len(law))
    assert_follows(counts, np.where(law < 1e-15, 0, law))
    assert bool((done.counters["steps"] == 15).all())


@pytest.mark.parametrize(("tokens", "depth"), [(2, 3), pytest.param(3, 3, marks=pytest.mark.slow)])
def test_walk_at_a_uniform_time_follows_the_average_of_powers(tokens, depth):
    tree, _, noisy = instance(tokens, depth)
    decoder = VGB(returns="uniform-time", max_steps=40, restarts=400)
    assert_follows(empirical(decoder, tree, noisy), TreeWalk(tree, noisy).uniform_time_leaf_law(40))


def test_walk_with_exact_values_returns_the_target_law():
    tree, accepted, _ = instance(3, 3)
    assert_follows(empirical(VGB(), tree, tree.values(accepted)), restricted_law(tree, accepted))


def test_sinclair_jerrum_with_exact_counts_draws_uniformly_from_the_accepted_set():
    tree, accepted, _ = instance(3, 3)
    uniform = Tree.uniform(3, 3)
    # The tree's own conditionals are not uniform: the walk ignores them.
    assert_follows(empirical(SinclairJerrum(), tree, uniform.values(accepted)), accepted / accepted.sum())


def test_greedy_takes_the_most_probable_token_everywhere():
    tree, _, _ = instance(3, 4)
    string = []
    for law in tree.laws:
        node = sum(token * 3 ** (len(string) - 1 - place) for place, token in enumerate(string))
        string.append(int(law[node].argmax()))
    assert run(Greedy(), tree, None, 2).tokens.tolist() == [string, string]


def test_exhaustive_search_finds_the_first_accepted_string_within_its_call_bound():
    for seed in range(20):
        tree, accepted, _ = instance(3, 4, seed)
        found = run(ExhaustiveSearch(), tree, tree.verdicts(accepted), 1)
        leaf = sum(token * 3 ** (3 - place) for place, token in enumerate(found.string(0)))
        assert leaf == int(np.flatnonzero(accepted)[0])
        assert found.total("verifier_calls") <= 3 * 4
        assert found.total("oracle_calls") == 0


def test_a_set_that_cannot_be_reached_fails_instead_of_looping():
    tree, accepted, _ = instance(2, 3)
    nothing = tree.verdicts(np.zeros_like(accepted))
    for decoder in (
        Rejection(max_tries=20),
        TokenwiseRejection(max_draws=20),
        ExhaustiveSearch(),
        ValueGuided(),
        VGB(max_steps=50),
    ):
        assert bool((run(decoder, tree, nothing, 10).status == Status.FAILED).all())


def test_backtracking_without_quota_is_plain_sampling_with_the_same_random_numbers():
    tree, accepted, _ = instance(3, 4)
    plain = run(Sampling(top_p=0.8), tree, None, 1000)
    none = run(Backtracking(top_p=0.8, quota=0), tree, tree.verdicts(accepted), 1000)
    assert torch.equal(plain.tokens, none.tokens)
    assert torch.equal(plain.counters["oracle_calls"], none.counters["oracle_calls"])


def test_backtracking_by_one_token_without_argmax_and_with_a_large_quota_is_tokenwise_rejection():
    tree = Tree.random(2, 4, rng=sl.rng(3), concentration=6.0)
    verdicts = tree.verdicts(instance(2, 4)[1])
    limit = tokenwise_law(tree, verdicts)
    laws = [backtracking_law(tree, verdicts, quota=quota, stride=1, redo="none") for quota in (0, 4, 100)]
    distances = [total_variation(law, limit) for law in laws]
    assert distances[0] > distances[1] > 1e-3
    assert distances[2] < 1e-8


def test_a_row_of_a_batch_is_what_it_is_alone():
    tree, accepted, noisy = instance(3, 4)
    keys = torch.arange(50) * 977
    prompts = [[0], [1, 2], [], [2]] * 12 + [[], [1]]
    for decoder, levels in (
        (Backtracking(quota=3, stride=2, top_p=0.9), tree.verdicts(accepted)),
        (VGB(), noisy),
        (BestOfN(candidates=3), noisy),
        (TokenwiseRejection(max_draws=50), tree.verdicts(accepted)),
    ):
        verifier = TableVerifier(levels, 3)
        room = [4 - len(prompt) for prompt in prompts]
        together = decoder.generate(TreeGenerator(tree), prompts, verifier=verifier, max_new=room, keys=keys)
        for row in (0, 1, 2, 17, 49):
            alone = decoder.generate(
                TreeGenerator(tree), [prompts[row]], verifier=verifier, max_new=room[row], keys=keys[row : row + 1]
            )
            assert alone.string(0) == together.string(row)
            assert alone.total("oracle_calls") == int(together.counters["oracle_calls"][row])


def test_log_probability_of_the_result_is_that_of_the_generator_itself():
    tree, accepted, _ = instance(3, 4)
    done = run(Backtracking(quota=2, stride=2, temperature=0.7), tree, tree.verdicts(accepted), 200)
    place = (done.tokens * torch.tensor([27, 9, 3, 1])).sum(1)
    assert np.allclose(done.logprob.numpy(), np.log(sampling_law(tree))[place])
