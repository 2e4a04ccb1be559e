"""Exact output distributions of the decoding algorithms on a tree, by enumeration (float64)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from sandlab.decoding.exact.trees import Tree

__all__ = [
    "backtracking_distribution",
    "best_of_n_distribution",
    "block_best_of_n_distribution",
    "kl_divergence",
    "restricted_distribution",
    "sampling_distribution",
    "tokenwise_distribution",
    "total_variation",
    "value_guided_distribution",
]

Levels = Sequence[np.ndarray]
State = tuple[tuple[int, ...], int, int, int]


def sampling_distribution(tree: Tree) -> np.ndarray:
    """p(s) = ∏ p(s_i | s_<i): plain sampling, over the A^H leaves."""
    return tree.reach[-1]


def restricted_distribution(tree: Tree, tilt: np.ndarray) -> np.ndarray:
    """p(s)·τ(s)/Z: the target. With a 0/1 tilt, the distribution of rejection sampling."""
    weights = tree.reach[-1] * tilt
    return weights / weights.sum()


def value_guided_distribution(tree: Tree, values: Levels) -> np.ndarray:
    """∏ π(s_i|s_<i) V(s_≤i)/Z(s_<i): tokens drawn with values, never taken back.

    Strings that can meet a node without any positive continuation make the distribution sum to less than 1: the rest
    fails.
    """
    reach = np.ones(1)
    for probs, below in zip(tree.probs, values[1:]):
        weights = probs * below.reshape(probs.shape)
        total = weights.sum(1, keepdims=True)
        reach = (reach[:, None] * np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)).ravel()
    return reach


def tokenwise_distribution(tree: Tree, verdicts: Levels) -> np.ndarray:
    """∏ p(s_i|s_<i) 1[V(s_≤i)=1]/Σ_a p(a|s_<i) 1[V(s_<i a)=1]: tokenwise rejection is value-guided by verdicts."""
    return value_guided_distribution(tree, verdicts)


def best_of_n_distribution(tree: Tree, scores: np.ndarray, n: int) -> np.ndarray:
    """Law of the highest-scored of n independent strings, the earliest among equals.

    With F(x) = P(score ≤ x): the best score is x with probability F(x)^n − F(x−)^n, and within one score the winner
    has the generator's probs.
    """
    probs = tree.reach[-1]
    return _best(probs, scores, n)


def block_best_of_n_distribution(tree: Tree, values: Levels, n: int, block: int) -> np.ndarray:
    """Best of n, block by block: candidates of `block` tokens, scored by the value of the node they end in."""
    reach, level = np.ones(1), 0
    while level < tree.depth:
        step = min(block, tree.depth - level)
        chunk = np.ones((len(reach), 1))
        for depth in range(level, level + step):
            chunk = (chunk.reshape(-1, 1) * tree.probs[depth]).reshape(len(reach), -1)
        scores = values[level + step].reshape(chunk.shape)
        reach = np.concatenate([start * _best(probs, score, n) for start, probs, score in zip(reach, chunk, scores)])
        level += step
    return reach


def _best(probs: np.ndarray, scores: np.ndarray, n: int) -> np.ndarray:
    result = np.zeros_like(probs)
    below = 0.0
    for score in np.unique(scores):
        same = scores == score
        mass = probs[same].sum()
        if mass > 0:
            result[same] = probs[same] / mass * ((below + mass) ** n - below**n)
        below += mass
    return result


def backtracking_distribution(
    tree: Tree,
    values: Levels,
    *,
    quota: int,
    stride: int,
    threshold: float = 0.5,
    redo: str = "argmax",
    check: str = "after",
) -> np.ndarray:
    """Law of tokenwise rejection with backtracking, by recursion over (string, quota left, tokens to rewrite, erased).

    Sampling lengthens the string and backtracking lowers the quota, so the recursion ends. `redo` and `check` are those
    of the decoder.
    """
    size, depth = tree.tokens, tree.depth

    def number(node: tuple[int, ...]) -> int:
        return sum(token * size ** (len(node) - 1 - place) for place, token in enumerate(node))

    def refused(node: tuple[int, ...], left: int) -> bool:
        return left > 0 and bool(values[len(node)][number(node)] < threshold)

    def back(node: tuple[int, ...], left: int, erased: int) -> State:
        kept = max(len(node) - stride, 0)
        erased += len(node) - kept if redo == "released" else 0
        return node[:kept], left - 1, stride if redo == "argmax" else 0, erased

    @cache
    def distribution_from(node: tuple[int, ...], left: int, rewrite: int, erased: int) -> np.ndarray:
        if len(node) == depth:
            return np.eye(1, size**depth, number(node)).ravel()
        if check == "before" and refused(node, left):
            node, left, rewrite, erased = back(node, left, erased)
        probs = tree.probs[len(node)][number(node)]
        greedy = rewrite > 0 or len(node) < erased
        total = np.zeros(size**depth)
        for token, probability in enumerate(np.eye(1, size, int(probs.argmax())).ravel() if greedy else probs):
            child = (*node, token)
            again = check == "after" and not greedy and refused(child, left)
            following = back(child, left, erased) if again else (child, left, max(rewrite - 1, 0), erased)
            if probability > 0:
                total += probability * distribution_from(*following)
        return total

    return distribution_from((), quota, 0, 0)


def total_variation(first: np.ndarray, second: np.ndarray) -> float:
    """½ Σ |p − q|."""
    return float(0.5 * np.abs(first - second).sum())


def kl_divergence(first: np.ndarray, second: np.ndarray) -> float:
    """KL(p‖q) = Σ p log(p/q), infinite where q misses mass of p."""
    support = first > 0
    if (second[support] <= 0).any():
        return float("inf")
    return float((first[support] * np.log(first[support] / second[support])).sum())
