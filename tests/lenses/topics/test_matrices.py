"""Block statistics against loops over pairs, and residuals of matrices that are optimal and that are not."""

from __future__ import annotations

import numpy as np
import pytest

from sandlab.circuits.topics.optima import block_value, diagonal_value, value_family
from sandlab.lenses.topics.matrices import block_contrast, block_sums, optimality_residuals
from sandlab.worlds.topics.masking import MaskedStatistics

S = MaskedStatistics(4, 3, 2)


def test_statistics_are_those_of_a_loop_over_pairs() -> None:
    matrix = np.random.default_rng(0).normal(size=(13, 13))
    same, different = [], []
    for i in range(1, 13):
        for j in range(1, 13):
            (same if (i - 1) // 3 == (j - 1) // 3 else different).append(matrix[i, j])
    found = block_contrast(matrix, 3)
    assert found.same == pytest.approx(np.mean(same)) and found.different == pytest.approx(np.mean(different))
    assert found.auc == pytest.approx(np.mean([a > b for a in same for b in different]))
    assert found.diagonal == pytest.approx(np.diag(matrix)[1:].mean())
    own, others = block_sums(matrix, 3)
    assert own == pytest.approx(3 * np.mean(same)) and others == pytest.approx(3 * np.mean(different))


def test_blocks_and_diagonals_are_told_apart() -> None:
    block, diagonal = block_contrast(block_value(S), 3), block_contrast(diagonal_value(S), 3)
    assert block.diagonality == pytest.approx(0, abs=1e-12) and diagonal.diagonality == pytest.approx(1)
    assert block.auc == 1.0
    assert block.contrast == pytest.approx(S.c3 / 3)


def test_optima_have_no_residual_and_perturbed_ones_have() -> None:
    rng = np.random.default_rng(1)
    value = value_family(S, rng.normal(size=13), rng.normal(size=(13, 13)))
    assert max(optimality_residuals(value, S).values()) < 1e-12
    for row, column, name in ((2, 0, "mask"), (2, 2, "own topic"), (2, 12, "other topics")):
        wrong = value.copy()
        wrong[row, column] += 0.1
        assert optimality_residuals(wrong, S)[name] > 0.05
