"""A given random transformer, and the masks that prune it into a target: nothing is drawn again, every layer is alike.

All layers of the random transformer have the same shapes and independent entries, uniform on [−1, 1]. A mask keeps some
entries of each matrix and sets the others to zero. Hidden units are dealt out to the inputs of a map in equal blocks;
of a unit's first weights only the one from its input is kept, and a subset of the second ones, whose products with it
add up to the target's entry. Whether that succeeds is up to the draw: the wider the layers, the more surely.

Source: Wen et al. 2023, Theorem 3 and Corollary 3; subset sums after Pensia et al. 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from sandlab.circuits.dyck.pruning import Matrix, TheoryLayerWeights, prune_value, subset_sum
from sandlab.circuits.gadgets import Network
from sandlab.errors import integer, require

__all__ = ["LayerMasks", "apply_masks", "find_masks", "random_transformer"]

Mask = Bool[np.ndarray, "row column"]
ENOUGH = 22  # units of one sign that a subset is chosen from: 2^11 sums on each side


@dataclass(frozen=True)
class LayerMasks:
    """Which entries of a layer's matrices are kept; `mlp` has one mask per matrix of the feed-forward network."""

    key: Mask
    query: Mask
    value: Mask
    mlp: list[Mask]


def random_transformer(
    layers: int, *, width: int, attention: int, hidden: int, floor: float = 0.1, rng: np.random.Generator
) -> list[TheoryLayerWeights]:
    """Layers of one shape whose entries are independent and uniform on [−1, 1]; four matrices per feed-forward."""
    sizes = {"layers": layers, "width": width, "attention": attention, "hidden": hidden}
    for name, size in sizes.items():
        integer(name, size, low=1)

    def draw(rows: int, columns: int) -> Matrix:
        return rng.uniform(-1, 1, (rows, columns))

    return [
        TheoryLayerWeights(
            draw(attention, width),
            draw(attention, width),
            draw(width, width),
            Network([draw(hidden, width), draw(hidden, hidden), draw(hidden, hidden), draw(width, hidden)]),
            floor,
        )
        for _ in range(layers)
    ]


def find_masks(random: Sequence[TheoryLayerWeights], targets: Sequence[TheoryLayerWeights]) -> list[LayerMasks]:
    """Masks of a random transformer of 4L layers under which it computes a given one of L layers.

    Of four layers the first writes [X ; D⁻¹ P⊥ W_V X], D being the entries that the second keeps in its value matrix;
    the second has the target's scores and feed-forward network; the other two pass the stream on. Refused when a value
    matrix has too few large entries.
    """
    require(len(random) == 4 * len(targets) >= 4, "random", f"{len(random)} layers", f"{4 * len(targets)} layers")
    masks: list[LayerMasks] = []
    for start, target in zip(range(0, len(random), 4), targets):
        before, after, *rest = random[start : start + 4]
        masks += [*_layer_masks(before, after, target), *(_passing(each, target.value.shape[0]) for each in rest)]
    return masks


def apply_masks(random: Sequence[TheoryLayerWeights], masks: Sequence[LayerMasks]) -> list[TheoryLayerWeights]:
    """The pruned transformer: every matrix times its mask."""
    return [
        TheoryLayerWeights(
            layer.key * mask.key,
            layer.query * mask.query,
            layer.value * mask.value,
            Network([weight * kept for weight, kept in zip(layer.mlp.weights, mask.mlp)]),
            layer.floor,
        )
        for layer, mask in zip(random, masks, strict=True)
    ]


def _layer_masks(
    before: TheoryLayerWeights, after: TheoryLayerWeights, target: TheoryLayerWeights
) -> tuple[LayerMasks, LayerMasks]:
    size = target.value.shape[0]
    columns, entries = prune_value(after.value, size)
    value = np.zeros_like(after.value, dtype=bool)
    value[np.arange(size), columns] = True
    moved = (np.eye(size) - 1 / size) @ target.value / entries[:, None]
    prepare = _both_signs(np.concatenate([np.eye(size), moved]))
    first = LayerMasks(
        *_nothing(before), _network_masks(before.mlp, prepare, range(size), [*range(size), *columns.tolist()])
    )
    # Queries are the inputs of the attention's units, keys their second weights: scores are Kᵀ Q.
    form = target.key.T @ target.query
    query, key = _pair_masks(after.query, after.key.T, form, range(size), range(size), relu=False)
    return first, LayerMasks(key.T, query, value, _network_masks(after.mlp, target.mlp, range(size), range(size)))


def _passing(layer: TheoryLayerWeights, size: int) -> LayerMasks:
    """Attention adds nothing (LN of zero is zero), the feed-forward network is the identity on the target's part."""
    return LayerMasks(*_nothing(layer), _network_masks(layer.mlp, _both_signs(np.eye(size)), range(size), range(size)))


def _both_signs(target: Matrix) -> Network:
    """M x = [M, −M] ReLU([I ; −I] x): two hidden units for each input, however many outputs there are."""
    eye = np.eye(target.shape[1])
    return Network([np.concatenate([eye, -eye]), np.concatenate([target, -target], axis=1)])


def _nothing(layer: TheoryLayerWeights) -> tuple[Mask, Mask, Mask]:
    key, query, value = (np.zeros_like(part, dtype=bool) for part in (layer.key, layer.query, layer.value))
    return key, query, value


def _network_masks(random: Network, target: Network, inputs: Sequence[int], outputs: Sequence[int]) -> list[Mask]:
    """Masks of four matrices under which they compute the target's W₂ ReLU(W₁ x) on some coordinates of the stream."""
    one, two, three, four = random.weights
    lower, upper = target.weights
    middle = range(len(lower))
    first, second = _pair_masks(one, two, lower, inputs, middle, relu=True)
    third, fourth = _pair_masks(three, four, upper, middle, outputs, relu=True)
    return [first, second, third, fourth]


def _pair_masks(
    first: Matrix, second: Matrix, target: Matrix, inputs: Sequence[int], outputs: Sequence[int], *, relu: bool
) -> tuple[Mask, Mask]:
    """Masks of two matrices whose product is nearest to `target`; with `relu` units of either sign serve alone."""
    kept_first, kept_second = np.zeros_like(first, dtype=bool), np.zeros_like(second, dtype=bool)
    block = len(first) // len(inputs)
    for number, place in enumerate(inputs):
        units = np.arange(number * block, (number + 1) * block)
        kept_first[units, place] = True
        weights = first[units, place]
        for group in (weights > 0, weights < 0) if relu else (np.ones_like(weights, dtype=bool),):
            chosen = units[group][:ENOUGH]
            for row, out in enumerate(outputs):
                if len(chosen) and target[row, number] != 0:
                    products = second[out, chosen] * first[chosen, place]
                    kept_second[out, chosen[subset_sum(products, float(target[row, number]))]] = True
    return kept_first, kept_second
