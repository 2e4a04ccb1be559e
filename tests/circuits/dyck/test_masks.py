"""Masks of a given random transformer: entries are kept or zero, the target is computed, width makes it sure."""

from __future__ import annotations

import numpy as np
import pytest

import sandlab as sl
from sandlab.circuits.dyck import masks
from sandlab.circuits.dyck.pruning import TheoryLayerWeights, layer_output, random_layer

SIZE, WIDTH, MIDDLE = 3, 64, 6


def given(seed: int, units: int, layers: int = 4) -> list[TheoryLayerWeights]:
    """A random transformer with `units` hidden units for each coordinate of the target's network."""
    draw = np.random.default_rng([seed, units])
    return masks.random_transformer(layers, width=WIDTH, attention=20 * SIZE, hidden=units * MIDDLE, rng=draw)


def target(seed: int) -> TheoryLayerWeights:
    return random_layer(SIZE, 2, MIDDLE, rng=np.random.default_rng([seed, 99]))


def error(targets: list[TheoryLayerWeights], pruned: list[TheoryLayerWeights], inputs: int = 5) -> float:
    """Largest error of a position's output over random inputs."""
    draw, worst = np.random.default_rng(5), 0.0
    for _ in range(inputs):
        x = draw.normal(size=(SIZE, 6))
        x /= np.linalg.norm(x, axis=0).max()
        expected, found = x, np.concatenate([x, np.zeros((WIDTH - SIZE, 6))])
        for layer in targets:
            expected = layer_output(layer, expected)
        for layer in pruned:
            found = layer_output(layer, found)
        assert np.abs(found[SIZE:]).max() < 1e-9
        worst = max(worst, float(np.linalg.norm(found[:SIZE] - expected, axis=0).max()))
    return worst


def succeeds(seed: int, units: int) -> bool:
    """Whether the given transformer can be pruned to 0.05; nothing is drawn again when it cannot."""
    random, goal = given(seed, units), [target(seed)]
    try:
        found = masks.apply_masks(random, masks.find_masks(random, goal))
    except sl.BadInput:
        return False
    return error(goal, found) < 0.05


def test_all_layers_have_one_shape_and_masks_keep_or_remove_their_entries() -> None:
    random = given(1, 64)
    found = masks.find_masks(random, [target(1)])
    pruned = masks.apply_masks(random, found)
    assert len({tuple(weight.shape for weight in layer.mlp.weights) for layer in random}) == 1
    for layer, mask, after in zip(random, found, pruned):
        drawn = [layer.key, layer.query, layer.value, *layer.mlp.weights]
        kept = [mask.key, mask.query, mask.value, *mask.mlp]
        left = [after.key, after.query, after.value, *after.mlp.weights]
        for before, chosen, now in zip(drawn, kept, left):
            assert chosen.dtype == bool and chosen.shape == before.shape
            assert np.array_equal(now[chosen], before[chosen]) and not now[~chosen].any()


def test_two_target_layers_come_out_of_eight_given_ones() -> None:
    random, goal = given(2, 72, layers=8), [target(2), target(3)]
    assert error(goal, masks.apply_masks(random, masks.find_masks(random, goal))) < 0.05


def test_success_grows_with_the_width_and_none_is_drawn_again() -> None:
    shares = [np.mean([succeeds(seed, units) for seed in range(5)]) for units in (8, 32, 64)]
    assert shares[0] == 0.0 and shares[-1] >= 0.8 and shares == sorted(shares)


def test_one_pruned_matrix_of_one_random_transformer_serves_two_functions() -> None:
    random, goals = given(4, 120), ([target(4)], [target(5)])
    pruned = [masks.apply_masks(random, masks.find_masks(random, goal)) for goal in goals]
    for goal, layers in zip(goals, pruned):
        assert error(goal, layers) < 0.05
    one, other = pruned
    assert np.array_equal(one[1].value, other[1].value) and one[1].value.any()
    for first, second in zip(one, other):
        assert np.array_equal(first.mlp.weights[0], second.mlp.weights[0])
    assert error(goals[0], other) > 0.2


def test_a_transformer_of_another_depth_is_refused() -> None:
    with pytest.raises(sl.BadInput, match="4 layers"):
        masks.find_masks(given(6, 8, layers=3), [target(6)])
