"""The study of balance and length."""

import numpy as np
import pytest
from claim_cases import check
from dyck_cases import SEEDS, measures_everything, runs, small
from scipy import stats
from stand_in import LAB

from sandlab.studies.claims import NotMeasured, Slope
from sandlab.studies.dyck.balance import Results, ranks, study

GROWING = np.linspace(0.0, 0.02, SEEDS)
OTHER = {"drift": 0.1, "long_threshold": 0.7}


def objective(violation: float, accuracy: float, sign: int, known: float = 0.99):
    """Seeds whose violation grows while their long accuracy grows or drops."""
    growing = violation + GROWING
    return runs(
        violation=growing, worst_violation=2 * growing, long_accuracy=accuracy + sign * GROWING, accuracy=known, **OTHER
    )


def test_every_claim_can_hold_and_can_fail() -> None:
    good = Results(objective(0.24, 0.8, -1), objective(0.1, 0.95, -1))
    check(study, good, Results(objective(0.1, 0.8, 1, known=0.9), objective(0.24, 0.7, 1, known=0.9)),
          Results(objective(0.1, 0.8, 1), objective(0.24, 0.95, 1)))  # fmt: skip


def test_the_slope_of_ranks_is_spearmans_correlation_and_a_constant_has_none() -> None:
    first, second = np.array([0.1, 0.5, 0.2, 0.9]), np.array([3.0, 1.0, 2.0, 4.0])
    assert Slope(below=0.0).estimate(ranks(first, second)) == pytest.approx(stats.spearmanr(first, second).statistic)
    with pytest.raises(NotMeasured, match="same violation"):
        ranks(np.ones(4), np.arange(4))


def test_a_small_run_of_the_full_settings_measures_every_claim() -> None:
    outcome = study.run(small(study.config("full")), LAB, "full")
    measures_everything(study, outcome, "full")
    assert set(outcome.figures) == {"balance"} and len(outcome.tables["models"]) == 6
