"""Exact output laws of the decoding algorithms on a tree, by enumeration (float64)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from sandlab.decoding.trees import Tree

__all__ = [
    "backtracking_law",
    "best_of_n_law",
    "block_best_of_n_law",
    "divergence",
    "restricted_law",
    "sampling_law",
    "tokenwise_law",
    "total_variation",
    "value_guided_law",
]

Levels = Sequence[np.ndarray]


def sampling_law(tree: Tree) -> np.ndarray:
    """p(s) = ∏ p(s_i | s_<i): plain sampling, over the A^H leaves."""
    return tree.reach[-1]


def restricted_law(tree: Tree, tilt: np.ndarray) -> np.ndarray:
    """p(s)·τ(s)/Z: the target. With a 0/1 tilt, the law of rejection sampling."""
    weights = tree.reach[-1] * tilt
    return weights / weights.sum()


def value_guided_law(tree: Tree, values: Levels) -> np.ndarray:
    """∏ π(s_i|s_<i) V(s_≤i)/Z(s_<i): tokens drawn with values, never taken back.

    Strings that can meet a node without any positive continuation make the law sum to less than 1: the rest fails.
    """
    reach = np.ones(1)
    for law, below in zip(tree.laws, values[1:]):
        weights = law * below.reshape(law.shape)
        total = weights.sum(1, keepdims=True)
        reach = (reach[:, None] * np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)).ravel()
    return reach


def tokenwise_law(tree: Tree, verdicts: Levels) -> np.ndarray:
    """∏ p(s_i|s_<i) 1[V(s_≤i)=1]/Σ_a p(a|s_<i) 1[V(s_<i a)=1]: tokenwise rejection is value-guided by verdicts."""
    return value_guided_law(tree, verdicts)


def best_of_n_law(tree: Tree, scores: np.ndarray, n: int) -> np.ndarray:
    """Law of the highest-scored of n independent strings, the earliest among equals.

    With F(x) = P(score ≤ x): the best score is x with probability F(x)^n − F(x−)^n, and within one score the winner
    has the generator's law.
    """
    law = tree.reach[-1]
    return _best(law, scores, n)


def block_best_of_n_law(tree: Tree, values: Levels, n: int, block: int) -> np.ndarray:
    """Best of n, block by block: candidates of `block` tokens, scored by the value of the node they end in."""
    reach, level = np.ones(1), 0
    while level < tree.depth:
        step = min(block, tree.depth - level)
        chunk = np.ones((len(reach), 1))
        for depth in range(level, level + step):
            chunk = (chunk.reshape(-1, 1) * tree.laws[depth]).reshape(len(reach), -1)
        scores = values[level + step].reshape(chunk.shape)
        reach = np.concatenate([start * _best(law, score, n) for start, law, score in zip(reach, chunk, scores)])
        level += step
    return reach


def _best(law: np.ndarray, scores: np.ndarray, n: int) -> np.ndarray:
    result = np.zeros_like(law)
    below = 0.0
    for score in np.unique(scores):
        same = scores == score
        mass = law[same].sum()
        if mass > 0:
            result[same] = law[same] / mass * ((below + mass) ** n - below**n)
        below += mass
    return result


def backtracking_law(
    tree: Tree, values: Levels, *, quota: int, stride: int, threshold: float = 0.5, redo: str = "argmax"
) -> np.ndarray:
    """Law of tokenwise rejection with backtracking, by recursion over (string, quota left).

    Sampling lengthens the string and backtracking lowers the quota, so the recursion ends.
    """
    size, depth = tree.tokens, tree.depth

    def walk_back(node: tuple[int, ...]) -> tuple[int, ...]:
        node = node[: max(len(node) - stride, 0)]
        for _ in range(stride if redo == "argmax" else 0):
            if len(node) < depth:
                node = (*node, int(tree.laws[len(node)][number(node)].argmax()))
        return node

    def number(node: tuple[int, ...]) -> int:
        return sum(token * size ** (len(node) - 1 - place) for place, token in enumerate(node))

    @cache
    def law_from(node: tuple[int, ...], left: int) -> np.ndarray:
        if len(node) == depth:
            return np.eye(size**depth)[number(node)]
        total = np.zeros(size**depth)
        for token, probability in enumerate(tree.laws[len(node)][number(node)]):
            child = (*node, token)
            rejected = left > 0 and values[len(child)][number(child)] < threshold
            if probability > 0:
                total += probability * (law_from(walk_back(child), left - 1) if rejected else law_from(child, left))
        return total

    return law_from((), quota)


def total_variation(first: np.ndarray, second: np.ndarray) -> float:
    """½ Σ |p − q|."""
    return float(0.5 * np.abs(first - second).sum())


def divergence(first: np.ndarray, second: np.ndarray) -> float:
    """KL(p‖q) = Σ p log(p/q), infinite where q misses mass of p."""
    support = first > 0
    if (second[support] <= 0).any():
        return float("inf")
    return float((first[support] * np.log(first[support] / second[support])).sum())
