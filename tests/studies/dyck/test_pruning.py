"""The study of pruned networks."""

import numpy as np
import pytest
from claim_cases import check
from dyck_cases import measures_everything
from stand_in import LAB

from sandlab.studies.dyck.pruning import COPIES, UNITS, Pruning, Results, Settings, study


def results(slope: float, error: float) -> Results:
    matrix = np.zeros((4, 60))
    draws = [10 ** (slope * np.array(COPIES) + 0.01 * draw) for draw in range(8)]
    masked = np.full((8, len(UNITS)), 0.5)
    masked[:, -1] = error
    return Results([Pruning(each, error, error, error, matrix, [matrix, matrix]) for each in draws], masked)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(-0.3, 0.01), results(0.0, 0.2))


@pytest.mark.slow
def test_a_small_run_measures_every_claim_and_errors_fall() -> None:
    outcome = study.run(Settings(seeds=2, size=3), LAB, "quick")
    measures_everything(study, outcome, "quick")
    errors = outcome.results.linear_errors
    assert bool((errors[:, -1] < 1e-2 * errors[:, 0]).all())
    masked = outcome.results.masked
    assert masked.shape == (8, len(UNITS)) and np.median(masked[:, -1]) < 0.1 * masked[:, 0].min()
