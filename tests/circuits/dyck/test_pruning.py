import itertools

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.circuits.dyck import pruning


def unit(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    matrix = np.random.default_rng(seed).normal(size=(rows, columns))
    return matrix / np.linalg.norm(matrix, 2)


def test_subset_sum_finds_the_best_of_all_subsets() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 9):
        values, target = rng.uniform(-1, 1, size), float(rng.uniform(-1, 1))
        best = min(abs(np.dot(mask, values) - target) for mask in itertools.product([0, 1], repeat=size))
        found = pruning.subset_sum(values, target)
        assert abs(values[found].sum() - target) == pytest.approx(best, abs=1e-12)


def spectral_error(copies: int, seed: int) -> float:
    target = unit(6, 6, seed)
    first, second = pruning.prune_linear(target, copies, rng=np.random.default_rng(seed)).weights
    return float(np.linalg.norm(second @ first - target, 2))


def test_the_pruning_error_decreases_exponentially_with_the_number_of_copies() -> None:
    errors = [np.median([spectral_error(copies, seed) for seed in range(3)]) for copies in (4, 8, 12, 16, 24)]
    assert all(later < earlier for earlier, later in itertools.pairwise(errors))
    assert errors[-1] <= 1e-4 * errors[1]


def test_pruning_only_keeps_or_removes_random_entries() -> None:
    target = unit(3, 3)
    pruned = pruning.prune_linear(target, 12, rng=np.random.default_rng(5)).weights
    rng = np.random.default_rng(5)
    first, second = rng.uniform(-1, 1, (3, 12)), rng.uniform(-1, 1, (3, 3, 12)).reshape(3, -1)
    assert np.isin(pruned[1], [*second.ravel(), 0.0]).all()
    assert ((pruned[1] == second) | (pruned[1] == 0)).all()
    assert set(np.unique(pruned[0])) <= {*first.ravel(), 0.0}


def test_a_pruned_relu_pair_computes_a_linear_map_on_both_signs() -> None:
    target, x = unit(4, 4), np.random.default_rng(1).normal(size=(4, 300))
    pruned = pruning.prune_linear(target, 48, rng=np.random.default_rng(2), relu=True)
    found = pruned(torch.as_tensor(x.T)).numpy().T
    assert np.linalg.norm(found - target @ x, axis=0).max() < 1e-2


def test_a_pruned_bilinear_form_equals_its_target() -> None:
    target = unit(5, 5)
    key, query = pruning.prune_bilinear(target, 24, rng=np.random.default_rng(3))
    assert np.abs(key.T @ query - target).max() < 1e-4


def test_two_pruned_random_layers_compute_a_given_layer() -> None:
    rng = np.random.default_rng(4)
    target = pruning.random_layer(4, 2, 8, rng=rng)
    before, after = pruning.prune_layer(target, width=48, linear_copies=24, relu_copies=48, rng=rng)
    x = rng.normal(size=(4, 8))
    x /= np.linalg.norm(x, axis=0).max()
    padded = np.zeros((48, 8))
    padded[:4] = x
    found = pruning.layer_output(after, pruning.layer_output(before, padded))
    assert np.linalg.norm(found[:4] - pruning.layer_output(target, x), axis=0).max() < 0.05
    assert np.abs(found[4:]).max() < 1e-9


def test_a_random_transformer_of_eight_layers_is_pruned_into_one_of_two() -> None:
    rng = np.random.default_rng(5)
    targets = [pruning.random_layer(4, 2, 6, rng=rng) for _ in range(2)]
    layers = pruning.prune_transformer(targets, width=40, linear_copies=20, relu_copies=60, rng=rng)
    assert len(layers) == 8
    x = rng.normal(size=(4, 6))
    x /= np.linalg.norm(x, axis=0).max()
    expected, found = x, np.concatenate([x, np.zeros((36, 6))])
    for target in targets:
        expected = pruning.layer_output(target, expected)
    for layer in layers:
        found = pruning.layer_output(layer, found)
    assert np.linalg.norm(found[:4] - expected, axis=0).max() < 0.05
    assert np.abs(found[4:]).max() < 1e-9


def test_two_different_functions_can_share_a_pruned_matrix() -> None:
    result = pruning.shared_matrix(4, rng=np.random.default_rng(6))
    assert result.identity_error < 0.05 and result.swap_error < 0.05
    assert not np.allclose(result.identity_last, result.swap_last)


def test_a_value_matrix_without_large_entries_is_refused() -> None:
    with pytest.raises(sl.BadInput, match="take a wider random model"):
        pruning.prune_value(np.zeros((8, 8)), 2)
