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
    "sinkhorn_jacobian",
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


def sinkhorn_jacobian(matrix: Float[Tensor, "*lead k k"]) -> Float[Tensor, "*lead k k k k"]:
    """∂T_ij/∂L_ab of T = `sinkhorn`(L), from T alone: no loop over the alternations.

    dT_ij = T_ij (dL_ij + α_i + β_j), where α and β keep all row and column sums: one linear system of size 2k. The sums
    leave α + c, β − c undetermined; vvᵀ with v = (1, −1) fixes c = 0.
    """
    k = matrix.shape[-1]
    sums = torch.cat([matrix.sum(-1), matrix.sum(-2)], -1)
    corner = torch.zeros_like(matrix)
    coupling = torch.cat([torch.cat([corner, matrix], -1), torch.cat([matrix.mT, corner], -1)], -2)
    sign = torch.cat([sums.new_ones(k), -sums.new_ones(k)])
    system = coupling + torch.diag_embed(sums + 1e-12) + torch.outer(sign, sign)
    unit = torch.eye(k, dtype=matrix.dtype, device=matrix.device)
    moved = matrix.flatten(-2).unsqueeze(-2)  # one column per logit (a, b): T_ab in row a and in row k + b
    ends = torch.cat([unit.repeat_interleave(k, 1), unit.repeat(1, k)])
    shift = -torch.linalg.solve(system, moved * ends)
    change = shift[..., :k, None, :] + shift[..., None, k:, :]
    change = change + torch.eye(k * k, dtype=matrix.dtype, device=matrix.device).reshape(k, k, k * k)
    return (matrix.unsqueeze(-1) * change).unflatten(-1, (k, k))


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
