"""Value-guided sampling with backtracking on a tree, solved exactly: stationary distribution, gap, first leaf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import spsolve

from sandlab.decoding.exact.trees import Tree
from sandlab.errors import BadInput

__all__ = ["TreeWalk", "first_leaf_distribution", "leaf_mass_bound", "spectral_gap_formula"]


@dataclass(frozen=True, eq=False)
class TreeWalk:
    """The lazy random walk of VGB on a tree with values V(y): a reversible chain with edge weights π(y)V(y).

    The edge between y and its parent carries c(y) = π(y)·V(y); the walk leaves a node along its edges in proportion
    to c, which is the parent with weight V(y) and a child with weight π(a|y)V(y∘a). Nodes that no edge reaches
    (V = 0) are left out of the chain.
    """

    tree: Tree
    values: Sequence[np.ndarray]

    def __post_init__(self) -> None:
        sizes = [len(level) for level in self.values]
        if sizes != [len(level) for level in self.tree.reach]:
            raise BadInput(f"values need one number per node, {[len(level) for level in self.tree.reach]}, got {sizes}")

    @cached_property
    def conductances(self) -> list[np.ndarray]:
        """c(y) = π(y)V(y) of the edge above each node; 0 for the root."""
        return [np.zeros(1)] + [reach * value for reach, value in zip(self.tree.reach[1:], self.values[1:])]

    @cached_property
    def levels(self) -> np.ndarray:
        """Length of each node's prefix, nodes shortest first."""
        return np.concatenate([np.full(len(level), h) for h, level in enumerate(self.values)])

    @cached_property
    def transition(self) -> sparse.csr_matrix:
        """P(y → z) of the lazy walk; a node without edges stays where it is."""
        size, arity = len(self.levels), self.tree.tokens
        child = np.arange(1, size)
        parent = (child - 1) // arity
        weight = np.concatenate(self.conductances)[1:]
        flow = sparse.coo_matrix((weight, (child, parent)), shape=(size, size)).tocsr()
        flow = flow + flow.T
        total = np.asarray(flow.sum(1)).ravel()
        scale = sparse.diags(np.divide(0.5, total, out=np.zeros(size), where=total > 0))
        stay = sparse.diags(np.where(total > 0, 0.5, 1.0))
        return (scale @ flow + stay).tocsr()

    @cached_property
    def stationary(self) -> np.ndarray:
        """π̃(y) ∝ 1[h>0]·π(y)V(y) + 1[h<H]·Σ_a π(y∘a)V(y∘a): the sum of the edges at y."""
        own = np.concatenate(self.conductances)
        below = [level.reshape(-1, self.tree.tokens).sum(1) for level in self.conductances[1:]]
        weights = own + np.concatenate([*below, np.zeros_like(self.conductances[-1])])
        return weights / weights.sum()

    @property
    def leaf_mass(self) -> float:
        """Z_H/(2 Σ_{h≥1} Z_h) with Z_h = Σ_{|y|=h} π(y)V(y): stationary probability of being at a complete string."""
        totals = [level.sum() for level in self.conductances[1:]]
        return float(totals[-1] / (2 * sum(totals)))

    @property
    def leaf_distribution(self) -> np.ndarray:
        """The stationary distribution given a leaf: ∝ π(y)V(y), hence the target whenever V is the tilt on leaves."""
        return self.conductances[-1] / self.conductances[-1].sum()

    @property
    def gap(self) -> float:
        """1 − λ₂ of the lazy walk on the nodes that can be visited; λ of the symmetrised chain √π̃ P /√π̃."""
        kept = np.flatnonzero(self.stationary > 0)
        root = np.sqrt(self.stationary[kept])
        chain = self.transition[kept][:, kept].toarray()
        symmetric = chain * root[:, None] / root[None, :]
        size = len(kept)
        return float(
            1 - eigh((symmetric + symmetric.T) / 2, eigvals_only=True, subset_by_index=(size - 2, size - 2))[0]
        )

    def distribution_after(self, steps: int) -> np.ndarray:
        """Law over all nodes after so many steps from the root."""
        probs = np.eye(1, len(self.levels)).ravel()
        for _ in range(steps):
            probs = probs @ self.transition
        return probs

    def uniform_time_leaf_distribution(self, steps: int) -> np.ndarray:
        """Law of the node at a uniformly drawn time in 1..T, given that it is a leaf."""
        probs, total = np.eye(1, len(self.levels)).ravel(), np.zeros(len(self.levels))
        for _ in range(steps):
            probs = probs @ self.transition
            total += probs
        leaves = total[self.levels == self.tree.depth]
        return leaves / leaves.sum()

    @cached_property
    def first_leaf(self) -> tuple[np.ndarray, float]:
        """Law of the first leaf reached from the root and the expected number of (lazy) steps, by a linear solve."""
        inner = np.flatnonzero((self.levels < self.tree.depth) & ((self.stationary > 0) | (self.levels == 0)))
        leaves = self.levels == self.tree.depth
        system = (sparse.identity(len(inner)) - self.transition[inner][:, inner]).T.tocsc()
        visits = spsolve(system, np.eye(1, len(inner)).ravel())
        return visits @ self.transition[inner][:, leaves], float(visits.sum())


def first_leaf_distribution(tree: Tree, values: Sequence[np.ndarray]) -> np.ndarray:
    """Law of the first leaf by series-parallel reduction of the electrical network; linear time, for deep trees.

    C(y) = Σ_a c(ya)·C(ya)/(c(ya) + C(ya)), with C = ∞ at leaves: the conductance from y down to the leaves. The
    current, and with it the first-leaf probability, splits at each node in proportion to the terms of the sum.
    """
    conductances = TreeWalk(tree, values).conductances
    terms = [np.zeros(0)] * (tree.depth + 1)
    terms[-1] = conductances[-1]
    for level in range(tree.depth - 1, 0, -1):
        down = terms[level + 1].reshape(-1, tree.tokens).sum(1)
        edge = conductances[level]
        terms[level] = np.divide(edge * down, edge + down, out=np.zeros_like(edge), where=edge + down > 0)
    probs = np.ones(1)
    for level in range(1, tree.depth + 1):
        split = terms[level].reshape(len(probs), tree.tokens)
        total = split.sum(1, keepdims=True)
        probs = (probs[:, None] * np.divide(split, total, out=np.zeros_like(split), where=total > 0)).ravel()
    return probs


def spectral_gap_formula(depth: int) -> float:
    """(1 − cos(π/(2H)))/2: the gap when V is exact, the walk's level being a lazy reflecting walk on 0..H."""
    return float((1 - np.cos(np.pi / (2 * depth))) / 2)


def leaf_mass_bound(depth: int, excess: float = 0.0) -> float:
    """1/(2(1 + (H−1)(1+ε))): leaf mass is at least this when V ≤ (1+ε)V* inside the tree; 1/(2H) for exact V."""
    return 1 / (2 * (1 + (depth - 1) * (1 + excess)))
