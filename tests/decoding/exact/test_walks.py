"""The walk of value-guided sampling with backtracking, against linear algebra and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import sandlab as sl
from sandlab.decoding.exact.distributions import restricted_distribution, total_variation, value_guided_distribution
from sandlab.decoding.exact.trees import Tree
from sandlab.decoding.exact.walks import TreeWalk, first_leaf_distribution, leaf_mass_bound, spectral_gap_formula

SHAPES = [(2, 4), (3, 3), (2, 6)]


def instance(tokens: int, depth: int, noise: float, seed: int = 0) -> tuple[Tree, np.ndarray, list[np.ndarray]]:
    tree = Tree.random(tokens, depth, rng=sl.rng(seed, "tree"))
    chance = np.random.default_rng(seed)
    tilt = chance.uniform(size=tokens**depth)
    values = [value * np.exp(noise * chance.uniform(-1, 1, size=value.shape)) for value in tree.values(tilt)]
    values[-1] = tilt
    return tree, tilt, values


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_stationary_law_is_the_left_eigenvector_of_the_transition_matrix(tokens, depth):
    tree, _, values = instance(tokens, depth, noise=1.0)
    walk = TreeWalk(tree, values)
    matrix = walk.transition.toarray()
    assert np.allclose(matrix.sum(1), 1, atol=1e-12)
    eigenvalues, vectors = np.linalg.eig(matrix.T)
    vector = np.real(vectors[:, np.argmax(np.real(eigenvalues))])
    assert np.abs(vector / vector.sum() - walk.stationary).max() < 1e-10
    flow = walk.stationary[:, None] * matrix
    assert np.abs(flow - flow.T).max() < 1e-15


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_transition_probabilities_are_those_of_the_algorithm(tokens, depth):
    tree, _, values = instance(tokens, depth, noise=1.0)
    matrix = TreeWalk(tree, values).transition.toarray()
    node = 2  # the prefix that is the second token alone
    weights = np.append(tree.probs[1][1] * values[2][tokens : 2 * tokens], values[1][1])
    expected = 0.5 * weights / weights.sum()
    children = [tokens * node + 1 + letter for letter in range(tokens)]
    assert np.allclose(matrix[node, [*children, 0]], expected)
    assert matrix[node, node] == pytest.approx(0.5)


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_leaves_follow_the_target_whatever_the_values_inside(tokens, depth):
    tree, tilt, values = instance(tokens, depth, noise=1.0)
    walk = TreeWalk(tree, values)
    leaves = walk.stationary[walk.levels == depth]
    assert total_variation(leaves / leaves.sum(), restricted_distribution(tree, tilt)) < 1e-10
    assert total_variation(walk.leaf_distribution, restricted_distribution(tree, tilt)) < 1e-10
    assert leaves.sum() == pytest.approx(walk.leaf_mass, abs=1e-12)


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_exact_values_give_every_inner_level_the_same_mass(tokens, depth):
    tree, _, values = instance(tokens, depth, noise=0.0)
    walk = TreeWalk(tree, values)
    masses = [walk.stationary[walk.levels == level].sum() for level in range(depth + 1)]
    assert np.allclose(masses, [1 / (2 * depth), *[1 / depth] * (depth - 1), 1 / (2 * depth)], atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_leaf_mass_is_above_its_bound_when_values_are_not_too_large(seed):
    chance = np.random.default_rng(seed)
    tree, _, values = instance(2, 5, noise=0.0, seed=seed)
    for excess in (0.1, 0.5, 2.0):
        worse = [value * chance.uniform(0, 1 + excess, size=value.shape) for value in values[:-1]] + [values[-1]]
        assert TreeWalk(tree, worse).leaf_mass >= leaf_mass_bound(5, excess)
        largest = [(1 + excess) * value for value in values[:-1]] + [values[-1]]
        assert TreeWalk(tree, largest).leaf_mass == pytest.approx(leaf_mass_bound(5, excess))


@pytest.mark.parametrize(
    ("tokens", "depth", "steps", "gap"), [(2, 4, 32, 0.03806), (3, 3, 18, 0.06699), (2, 6, 72, 0.01704)]
)
def test_exact_values_make_the_level_a_reflecting_walk(tokens, depth, steps, gap):
    tree, tilt, values = instance(tokens, depth, noise=0.0)
    walk = TreeWalk(tree, values)
    probs, expected = walk.first_leaf
    assert expected == pytest.approx(steps, abs=1e-9) and steps == 2 * depth**2
    assert walk.gap == pytest.approx(spectral_gap_formula(depth), abs=1e-10)
    assert walk.gap == pytest.approx(gap, abs=1e-5)
    assert total_variation(probs, restricted_distribution(tree, tilt)) < 1e-10


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_gap_is_that_of_a_dense_eigenvalue_solver(tokens, depth):
    tree, tilt, values = instance(tokens, depth, noise=0.8)
    values[-1] = np.where(tilt < 0.3, 0.0, tilt)
    walk = TreeWalk(tree, values)
    kept = walk.stationary > 0
    second = np.sort(np.real(np.linalg.eigvals(walk.transition.toarray()[kept][:, kept])))[-2]
    assert walk.gap == pytest.approx(1 - second, abs=1e-10)


@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_network_reduction_gives_the_law_of_the_linear_solve(tokens, depth):
    tree, tilt, values = instance(tokens, depth, noise=1.0)
    values[-1] = np.where(tilt < 0.4, 0.0, tilt)
    assert total_variation(TreeWalk(tree, values).first_leaf[0], first_leaf_distribution(tree, values)) < 1e-12


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("tokens", "depth"), SHAPES)
def test_with_noisy_values_the_first_leaf_errs_less_than_sampling_without_backtracking(tokens, depth, seed):
    tree, tilt, values = instance(tokens, depth, noise=1.0, seed=seed)
    target = restricted_distribution(tree, tilt)
    first = total_variation(first_leaf_distribution(tree, values), target)
    assert 1e-3 < first < total_variation(value_guided_distribution(tree, values), target)


@pytest.mark.parametrize(
    ("depth", "error", "guided", "walk"),
    [
        (2, 0.1, 0.0500, 0.0251),
        (8, 0.1, 0.1083, 0.0300),
        (14, 0.1, 0.1437, 0.0312),
        (6, 0.3, 0.2648, 0.0907),
        (12, 0.3, 0.3939, 0.0964),
        (4, 0.5, 0.3438, 0.1565),
        (14, 0.5, 0.6605, 0.1763),
    ],
)
def test_last_token_bias_amplifies_without_backtracking_and_not_with_it(depth, error, guided, walk):
    tree = Tree.uniform(2, depth)
    biased = [np.tile([1 + error, 1 - error], 2 ** (level - 1)) for level in range(1, depth)]
    values = [np.ones(1), *biased, np.ones(2**depth)]
    uniform = np.full(2**depth, 2.0**-depth)
    assert total_variation(value_guided_distribution(tree, values), uniform) == pytest.approx(guided, abs=1e-4)
    assert total_variation(first_leaf_distribution(tree, values), uniform) == pytest.approx(walk, abs=1e-4)
    assert total_variation(TreeWalk(tree, values).leaf_distribution, uniform) < 1e-12


def test_a_tree_refuses_tables_of_the_wrong_shape():
    with pytest.raises(sl.BadInput, match="level 1 needs 2 rows of 2 probabilities"):
        Tree((np.full((1, 2), 0.5), np.full((3, 2), 0.5)))
    with pytest.raises(sl.BadInput, match="one number per node"):
        TreeWalk(Tree.uniform(2, 2), [np.ones(1), np.ones(2)])
