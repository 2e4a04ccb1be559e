"""Three-way tensors: Kruskal's condition, and Jennrich's simultaneous diagonalisation."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from sandlab.errors import BadInput, integer

__all__ = ["Factors", "jennrich", "kruskal_condition", "kruskal_rank", "polish"]


@dataclass(frozen=True)
class Factors:
    """W = Σ_i A_i ⊗ B_i ⊗ C_i, with the relative error ‖Σ … − W‖/‖W‖."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    error: float

    @property
    def tensor(self) -> Float[np.ndarray, "n d1 d2"]:
        return np.einsum("ni,bi,ci->nbc", self.A, self.B, self.C)


def kruskal_rank(matrix: Float[np.ndarray, "d r"], tolerance: float = 1e-10) -> int:
    """The largest r such that every r columns are linearly independent, by trying all of them."""
    columns = matrix.shape[1]
    integer("columns", columns, low=1, high=12, hint="every subset of columns is tried")
    unit = matrix / np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    for size in range(1, columns + 1):
        subsets = itertools.combinations(range(columns), size)
        if any(np.linalg.matrix_rank(unit[:, list(each)], tol=tolerance) < size for each in subsets):
            return size - 1
    return columns


def kruskal_condition(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> bool:
    """k_A + k_B + k_C ≥ 2R + 2: the decomposition is unique up to permutation and scaling (Proposition 1)."""
    return kruskal_rank(A) + kruskal_rank(B) + kruskal_rank(C) >= 2 * A.shape[1] + 2


def jennrich(
    tensor: Float[np.ndarray, "n d1 d2"], rank: int, *, seed: int = 0, draws: int = 10, sweeps: int = 0
) -> Factors:
    """The factors of a tensor of rank k by simultaneous diagonalisation, the best of several random draws.

    Two random combinations of slices, compressed to k × k: the eigenvectors of G_a G_b⁻¹ are the B_i. `sweeps` of
    alternating least squares polish the factors of a noisy tensor. Source: Harshman 1970.
    """
    left = np.linalg.svd(tensor.transpose(1, 0, 2).reshape(tensor.shape[1], -1), full_matrices=False)[0][:, :rank]
    right = np.linalg.svd(tensor.transpose(2, 0, 1).reshape(tensor.shape[2], -1), full_matrices=False)[0][:, :rank]
    slices = left.T @ tensor @ right
    rng, found = np.random.default_rng(seed), []
    for _ in range(integer("draws", draws, low=1)):
        factors = _diagonalise(slices, rng)
        if factors is not None:
            A, B, C = factors[0], left @ factors[1], right @ factors[2]
            found.append(Factors(A, B, C, _misfit(tensor, A, B, C)))
    if not found:
        raise BadInput(f"no draw could be diagonalised: the tensor has no decomposition of rank {rank}")
    best = min(found, key=lambda each: each.error)
    return polish(tensor, best, sweeps) if sweeps else best


def _diagonalise(slices: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """One draw: real eigenvectors, then each slice's coordinates are a matrix of rank one per component."""
    first, second = (np.einsum("n,nbc->bc", rng.normal(size=len(slices)), slices) for _ in range(2))
    vectors = np.linalg.eig(first @ np.linalg.pinv(second))[1].real
    if np.linalg.cond(vectors) > 1e12:
        return None
    parts = np.einsum("ib,nbc->inc", np.linalg.inv(vectors), slices)
    u, s, v = np.linalg.svd(parts, full_matrices=False)
    return (u[:, :, 0] * s[:, :1]).T, vectors, v[:, 0].T


def polish(tensor: np.ndarray, start: Factors, sweeps: int = 200) -> Factors:
    """Alternating least squares from given factors, kept only where it lowers the error."""
    A, B, C = start.A, start.B, start.C
    for _ in range(sweeps):
        A = _solve(tensor, "nbc,bi,ci->ni", B, C)
        B = _solve(tensor, "nbc,ni,ci->bi", A, C)
        C = _solve(tensor, "nbc,ni,bi->ci", A, B)
    error = _misfit(tensor, A, B, C)
    return Factors(A, B, C, error) if error < start.error else start


def _solve(tensor: np.ndarray, subscripts: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    gram = (first.T @ first) * (second.T @ second)
    return np.einsum(subscripts, tensor, first, second, optimize=True) @ np.linalg.pinv(gram)


def _misfit(tensor: np.ndarray, A: np.ndarray, B: np.ndarray, C: np.ndarray) -> float:
    whole = np.linalg.norm(tensor)
    return float(np.linalg.norm(np.einsum("ni,bi,ci->nbc", A, B, C, optimize=True) - tensor) / whole)
