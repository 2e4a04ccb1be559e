"""What ties the algorithms together on small trees: special cases, counts, batches, failures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.decoding._session.session import Status
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.rejection import BestOfN, ExhaustiveSearch, Rejection, TokenwiseRejection
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.decoding.decoders.walks import VGB, ValueGuided
from sandlab.decoding.exact.distributions import (
    backtracking_distribution,
    best_of_n_distribution,
    block_best_of_n_distribution,
    kl_divergence,
    restricted_distribution,
    sampling_distribution,
    tokenwise_distribution,
    total_variation,
)
from sandlab.decoding.exact.trees import TableVerifier, Tree, TreeGenerator
from sandlab.decoding.exact.walks import TreeWalk

SHAPES = [(2, 4), (3, 3)]


def instance(tokens: int, depth: int, seed: int = 0) -> tuple[Tree, np.ndarray, list[np.ndarray]]:
    """A random tree, a 0/1 set of accepted leaves that leaves some subtrees empty, and noisy values."""
    tree = Tree.random(tokens, depth, rng=sl.rng(seed, "tree"))
    chance = np.random.default_rng(seed)
    accepted = (chance.uniform(size=tokens**depth) < 0.4).astype(float)
    accepted[-1] = 1.0
    noisy = [value * np.exp(chance.normal(size=value.shape)) for value in tree.values(accepted)]
    noisy[-1] = accepted
    return tree, accepted, noisy


def run(decoder, tree: Tree, levels, runs: int, seed: int = 1):
    verifier = None if levels is None else TableVerifier(levels, tree.tokens)
    prompts = torch.zeros(runs, 0, dtype=torch.long)
    return decoder.generate(TreeGenerator(tree), prompts, verifier=verifier, max_new=tree.depth, rng=sl.rng(seed))


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_the_law_of_tokenwise_rejection_is_not_the_restricted_one(tokens, depth):
    tree, accepted, _ = instance(tokens, depth)
    probs = tokenwise_distribution(tree, tree.verdicts(accepted))
    assert total_variation(probs, restricted_distribution(tree, accepted)) > 0.01
    assert kl_divergence(restricted_distribution(tree, accepted), probs) > 0


def test_block_best_of_n_with_one_block_is_best_of_n():
    tree, _, noisy = instance(3, 4)
    assert np.allclose(block_best_of_n_distribution(tree, noisy, 4, 4), best_of_n_distribution(tree, noisy[-1], 4))


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_the_walk_takes_as_many_steps_to_its_first_leaf_as_a_linear_solve_says(tokens, depth):
    tree, _, noisy = instance(tokens, depth)
    done = run(VGB(), tree, noisy, 20_000)
    measured = done.counters["steps"].double()
    expected = TreeWalk(tree, noisy).first_leaf[1]
    assert abs(float(measured.mean()) - expected) < 4 * float(measured.std()) / len(done) ** 0.5


@pytest.mark.parametrize("returns", ["final", "uniform-time"])
def test_a_walk_of_fixed_length_takes_that_many_steps(returns):
    tree, _, noisy = instance(2, 3)
    done = run(VGB(returns=returns, max_steps=15, restarts=1), tree, noisy, 500)
    steps = done.counters["steps"]
    assert bool((steps == 15).all()) if returns == "final" else set(steps.tolist()) == set(range(1, 16))


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
    limit = tokenwise_distribution(tree, verdicts)
    tables = [backtracking_distribution(tree, verdicts, quota=quota, stride=1, redo="none") for quota in (0, 4, 100)]
    distances = [total_variation(probs, limit) for probs in tables]
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
    assert np.allclose(done.logprob.numpy(), np.log(sampling_distribution(tree))[place])
