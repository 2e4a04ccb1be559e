"""Doubly stochastic matrices: samplers and parametrisations of the transition matrix of an HMM."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer

__all__ = [
    "birkhoff",
    "circulant",
    "random_doubly_stochastic",
    "sinkhorn",
    "symmetric_doubly_stochastic",
    "three_cycle",
]


def sinkhorn(logits: Float[Tensor, "*lead k k"], iterations: int = 60) -> Float[Tensor, "*lead k k"]:
    """Alternate row and column normalisation of exp(logits), ending with columns; differentiable.

    Logits are clipped to ±30: beyond that a matrix of floats is a permutation already.
    """
    matrix = logits.clamp(-30.0, 30.0).exp()
    columns = torch.ones_like(matrix[..., :1, :])
    for _ in range(integer("iterations", iterations, low=1)):
        rows = 1 / (matrix * columns).sum(-1, keepdim=True)  # scalings, not matrices, are iterated: it is cheaper
        columns = 1 / (matrix * rows).sum(-2, keepdim=True)
    return rows * matrix * columns


def random_doubly_stochastic(states: int, rng: np.random.Generator, spread: float = 1.0) -> Float[np.ndarray, "k k"]:
    """Sinkhorn's matrix of independent N(0, spread²) logits."""
    logits = torch.from_numpy(rng.normal(scale=spread, size=(states, states)))
    return sinkhorn(logits, 500).numpy()


def birkhoff(states: int, rng: np.random.Generator, permutations: int = 5) -> Float[np.ndarray, "k k"]:
    """A mixture of random permutation matrices with Dirichlet(1) weights: Birkhoff's theorem read backwards."""
    weights = rng.dirichlet(np.ones(permutations))
    return np.asarray(sum(weight * np.eye(states)[rng.permutation(states)] for weight in weights))


def three_cycle(states: int = 3) -> Float[np.ndarray, "k k"]:
    """The cyclic permutation P: P e_j = e_{j+1}."""
    return np.roll(np.eye(states), 1, axis=0)


def circulant(weights: Sequence[float]) -> Float[np.ndarray, "k k"]:
    """Σ_j weights[j] Pʲ: aI + bP + cP² for three weights."""
    cycle = three_cycle(len(weights))
    return np.asarray(sum(weight * np.linalg.matrix_power(cycle, power) for power, weight in enumerate(weights)))


def symmetric_doubly_stochastic(states: int, rng: np.random.Generator, spread: float = 1.0) -> Float[np.ndarray, "k k"]:
    """(T + Tᵀ)/2 of a random doubly stochastic T."""
    matrix = random_doubly_stochastic(states, rng, spread)
    return (matrix + matrix.T) / 2
