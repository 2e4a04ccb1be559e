"""Stochastic matrices of this chapter: checks, and nested tuples so that worlds stay values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sandlab.errors import require

Rows = tuple[tuple[float, ...], ...]


def as_rows(name: str, values: Sequence[Sequence[float]] | np.ndarray) -> Rows:
    """A matrix as nested tuples; refused unless it is a finite two-dimensional array."""
    array = np.asarray(values, dtype=np.float64)
    require(array.ndim == 2 and array.size > 0 and bool(np.isfinite(array).all()), name, values, "a matrix of numbers")
    return tuple(map(tuple, array.tolist()))


def check_columns(name: str, matrix: np.ndarray, tolerance: float = 1e-6) -> None:
    """Refuse a matrix whose columns are not distributions."""
    good = matrix.min() >= -tolerance and np.abs(matrix.sum(0) - 1).max() <= tolerance
    require(
        bool(good), name, matrix.tolist(), "a matrix whose columns are distributions", "columns, not rows, sum to 1"
    )
