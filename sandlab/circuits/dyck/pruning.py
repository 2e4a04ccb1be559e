"""Pruning a random network into a given one: a single weight matrix says nothing about the function.

Nonstructural pruning sets entries of a random matrix to zero and keeps the others. With enough random entries a subset
sums to any number, so every layer of a target transformer is contained in a larger random one (Wen et al. 2023,
Theorem 3 and Corollary 3; the subset-sum argument is Pensia et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from sandlab.circuits.gadgets import Network, linear_as_relu
from sandlab.errors import BadInput, integer, require
from sandlab.models.attention import attention_pattern, causal_mask
from sandlab.registry import register

__all__ = [
    "SharedMatrix",
    "TheoryLayerWeights",
    "layer_output",
    "prune_bilinear",
    "prune_identity",
    "prune_layer",
    "prune_linear",
    "prune_mlp",
    "prune_transformer",
    "prune_value",
    "random_layer",
    "shared_matrix",
    "subset_sum",
]


_ENOUGH = 26  # units per entry that the search considers: errors near 1e-7, 2^13 sums on each side
Matrix = Float[np.ndarray, "row column"]


def subset_sum(values: np.ndarray, target: float) -> np.ndarray:
    """Mask of the subset of `values` whose sum is nearest to `target`, by meeting in the middle (2^(n/2) sums)."""
    values = np.asarray(values, dtype=np.float64)
    half = len(values) // 2
    left, right = _all_sums(values[:half]), _all_sums(values[half:])
    order = np.argsort(right)
    index = np.searchsorted(right[order], target - left)
    near = np.clip(np.stack([index - 1, index]), 0, len(right) - 1)
    gap = np.abs(left + right[order][near] - target)
    side, row = np.unravel_index(int(gap.argmin()), gap.shape)
    bits = np.concatenate([_bits(int(row), half), _bits(int(order[near[side, row]]), len(values) - half)])
    return bits.astype(bool)


@register("circuits")
def prune_linear(target: Matrix, copies: int, *, rng: np.random.Generator, relu: bool = False) -> Network:
    """A two-layer random net with `copies` hidden units per input, pruned so that it computes `target` x.

    Hidden unit (j, s) keeps only its weight from input j; for each output i a subset S_ij of the units (j, ·) is kept
    with Σ_{s∈S_ij} W₂[i,(j,s)] W₁[(j,s),j] ≈ target_ij. With `relu`, positive and negative first weights see the
    positive and the negative part of the input, and each group must suffice. The error decreases exponentially in
    `copies`.
    """
    integer("copies", copies, low=2)
    outputs, inputs = target.shape
    first = _balanced_signs(inputs, copies, rng) if relu else rng.uniform(-1, 1, (inputs, copies))
    second = rng.uniform(-1, 1, (outputs, inputs, copies))
    kept = np.zeros_like(second, dtype=bool)
    groups = [first > 0, first < 0] if relu else [np.ones_like(first, dtype=bool)]
    for group in groups:
        for i, j in zip(*np.nonzero(target)):  # a zero entry keeps nothing
            units = np.flatnonzero(group[j])[:_ENOUGH]
            kept[i, j, units[subset_sum(second[i, j, units] * first[j, units], float(target[i, j]))]] = True
    spread = np.zeros((inputs * copies, inputs))
    for j in range(inputs):
        spread[j * copies : (j + 1) * copies, j] = first[j]
    return Network([spread, (second * kept).reshape(outputs, -1)], activations=["relu" if relu else "identity"])


def prune_mlp(target: Network, copies: int, *, rng: np.random.Generator) -> Network:
    """W₂ ReLU(W₁ x) from four random layers: each of the two maps is a pruned ReLU pair."""
    lower, upper = (prune_linear(weight, copies, rng=rng, relu=True) for weight in target.weights)
    return Network(lower.weights + upper.weights)


@register("circuits")
def prune_bilinear(target: Matrix, copies: int, *, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """Key and query matrices, pruned from random ones, with Kᵀ Q ≈ target; hidden units are attention dimensions."""
    query, key_transposed = prune_linear(target, copies, rng=rng).weights
    return key_transposed.T.copy(), query


def prune_value(random: Matrix, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Keep `size` entries above ½ in rows 0…size−1 and increasing columns of the right half: a scaled shift.

    Returns the chosen columns and the kept entries.
    """
    width = random.shape[0]
    require(size <= width // 2, "size", size, f"at most half of the random width ({width})")
    columns: list[int] = []
    start = width // 2
    for row in range(size):
        large = np.flatnonzero(random[row, start:] > 0.5)
        if len(large) == 0:
            raise BadInput("no entry above ½ is left for the value matrix: take a wider random model")
        columns.append(start + int(large[0]))
        start = columns[-1] + 1
    return np.array(columns), random[np.arange(size), columns]


@dataclass(frozen=True)
class TheoryLayerWeights:
    """One layer g(LN_C(W_V X σ(mask + (W_K X)ᵀ W_Q X)) + X), columns are positions, g a bias-free ReLU network."""

    key: Matrix
    query: Matrix
    value: Matrix
    mlp: Network
    floor: float = 0.1


def random_layer(width: int, attention: int, hidden: int, *, rng: np.random.Generator) -> TheoryLayerWeights:
    """A target layer with every matrix of spectral norm at most 1 and a two-layer ReLU network of width `hidden`."""

    def bounded(rows: int, columns: int) -> Matrix:
        matrix = rng.normal(size=(rows, columns))
        return matrix / np.linalg.norm(matrix, 2)

    mlp = Network([bounded(hidden, width), bounded(width, hidden)])
    return TheoryLayerWeights(bounded(attention, width), bounded(attention, width), bounded(width, width), mlp)


def layer_output(layer: TheoryLayerWeights, x: Float[np.ndarray, "width time"]) -> Float[np.ndarray, "width time"]:
    """The layer's output on columns x; key i and query j meet when i ≤ j."""
    rows = torch.as_tensor(x.T)
    query, key, value = (rows @ torch.as_tensor(part).mT for part in (layer.query, layer.key, layer.value))
    scores = query @ key.mT
    z = attention_pattern(scores, causal_mask(scores)) @ value
    centred = z - z.mean(-1, keepdim=True)
    normal = centred / centred.norm(dim=-1, keepdim=True).clamp(min=layer.floor)
    return layer.mlp(normal + rows).mT.numpy()


@register("circuits")
def prune_layer(
    target: TheoryLayerWeights, *, width: int, linear_copies: int, relu_copies: int, rng: np.random.Generator
) -> tuple[TheoryLayerWeights, TheoryLayerWeights]:
    """Two layers of a random transformer, pruned so that together they compute the target layer.

    The first one's value matrix is pruned to 0 and its feed-forward to X ↦ [X ; D⁻¹ P⊥ W_V X ; 0], where D are the
    entries kept in the second one's value matrix, which then writes P⊥ W_V X next to X. Keys and queries of the second
    are pruned to the target's bilinear form, its feed-forward to the target's. The rows beyond the target's are 0.
    """
    size = target.value.shape[0]
    columns, entries = _prunable_value(width, size, rng)
    value = np.zeros((width, width))
    value[np.arange(size), columns] = entries
    centre = np.eye(size) - 1 / size
    prepare = np.zeros((width, width))
    prepare[:size, :size] = np.eye(size)
    prepare[columns, :size] = centre @ target.value / entries[:, None]
    first_mlp = _widen(_prune_map(prepare[:, :size], relu_copies, rng), width)
    key, query = prune_bilinear(target.key.T @ target.query, linear_copies, rng=rng)
    second_mlp = prune_mlp(target.mlp, relu_copies, rng=rng)
    nothing = np.zeros((1, width))
    before = TheoryLayerWeights(nothing, nothing, np.zeros((width, width)), first_mlp, target.floor)
    after = TheoryLayerWeights(
        _pad(key, None, width), _pad(query, None, width), value, _widen(second_mlp, width), target.floor
    )
    return before, after


def prune_identity(
    size: int, *, width: int, relu_copies: int, floor: float, rng: np.random.Generator
) -> TheoryLayerWeights:
    """A random layer pruned so that it passes the first `size` coordinates on and clears the others.

    Its value matrix is pruned to 0, and LN(0) = 0, so attention does nothing; the feed-forward is a pruned identity.
    """
    keep = np.zeros((width, size))
    keep[:size] = np.eye(size)
    nothing = np.zeros((1, width))
    mlp = _widen(_prune_map(keep, relu_copies, rng), width)
    return TheoryLayerWeights(nothing, nothing, np.zeros((width, width)), mlp, floor)


@register("circuits")
def prune_transformer(
    targets: Sequence[TheoryLayerWeights],
    *,
    width: int,
    linear_copies: int,
    relu_copies: int,
    rng: np.random.Generator,
) -> list[TheoryLayerWeights]:
    """A random transformer of 4L layers, pruned into a given one of L layers (Theorem 3).

    Each target layer takes two random layers, the other 2L are pruned to the identity. Inputs have the target's
    coordinates first, followed by zeros; so have the outputs.
    """
    require(len(targets) >= 1, "targets", len(targets), "at least one layer")
    size = targets[0].value.shape[0]
    layers: list[TheoryLayerWeights] = []
    for target in targets:
        layers += prune_layer(target, width=width, linear_copies=linear_copies, relu_copies=relu_copies, rng=rng)
        for _ in range(2):
            layers.append(prune_identity(size, width=width, relu_copies=relu_copies, floor=target.floor, rng=rng))
    return layers


@dataclass(frozen=True)
class SharedMatrix:
    """Two functions whose pruned networks share a matrix entry by entry: identity and a swap of two coordinates.

    shared                         the matrix
    identity_error, swap_error     largest relative error of each network on random inputs
    identity_last, swap_last       their last matrices, which differ
    """

    shared: Matrix
    identity_error: float
    swap_error: float
    identity_last: Matrix
    swap_last: Matrix


def shared_matrix(size: int, *, rng: np.random.Generator, copies: int = 96) -> SharedMatrix:
    """Identity and swap, each a pruned ReLU pair followed by a pruned ReLU pair (Corollary 3).

    The first pair computes the identity in both, so its two matrices are the same; only the second pair differs.
    """
    eye = np.eye(size)
    swap = eye[[1, 0, *range(2, size)]]
    common = _prune_map(eye, copies, rng)
    ends = [_prune_map(target, copies, rng) for target in (eye, swap)]
    tests = torch.as_tensor(rng.normal(size=(size, 200)).T)
    identity_error, swap_error = (
        float(((end(common(tests)) - tests @ torch.as_tensor(target).mT).norm(dim=-1) / tests.norm(dim=-1)).max())
        for end, target in zip(ends, (eye, swap))
    )
    return SharedMatrix(common.weights[1], identity_error, swap_error, ends[0].weights[-1], ends[1].weights[-1])


def _prune_map(target: Matrix, copies: int, rng: np.random.Generator) -> Network:
    """Four pruned layers that compute a linear map."""
    return prune_mlp(linear_as_relu(target), copies, rng=rng)


def _widen(network: Network, width: int) -> Network:
    """The network on the first coordinates of a stream: further inputs are cut off, further outputs are 0."""
    first, *inner, last = network.weights
    return Network([_pad(first, None, width), *inner, _pad(last, width, None)])


def _balanced_signs(inputs: int, copies: int, rng: np.random.Generator) -> Matrix:
    """Random first weights, redrawn for inputs with fewer than a third of either sign, which would be stuck."""
    first = rng.uniform(-1, 1, (inputs, copies))
    while True:
        positive = (first > 0).sum(1)
        stuck = np.minimum(positive, copies - positive) < copies // 3
        if not stuck.any():
            return first
        first[stuck] = rng.uniform(-1, 1, (int(stuck.sum()), copies))


def _prunable_value(width: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random value matrices until one has enough large entries: the theorem's "with high probability"."""
    for _ in range(100):
        try:
            return prune_value(rng.uniform(-1, 1, (width, width)), size)
        except BadInput:
            continue
    raise BadInput(f"no random matrix of width {width} can hold {size} coordinates: take a wider random model")


def _pad(matrix: Matrix, rows: int | None, columns: int | None) -> Matrix:
    padded = np.zeros((rows or matrix.shape[0], columns or matrix.shape[1]))
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded


def _all_sums(values: np.ndarray) -> np.ndarray:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


def _bits(number: int, count: int) -> np.ndarray:
    return (number >> np.arange(count)) & 1
