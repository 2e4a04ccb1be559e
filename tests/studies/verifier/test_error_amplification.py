"""The study of error amplification: claims on made-up distances, a binomial closed form, a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from scipy import stats
from stand_in import LAB

from sandlab.studies.verifier.error_amplification import Bits, Results, Settings, solve_bits, study


def results(slope: float, drift: float, error: float = 0.0, steps: float = 1.0) -> Results:
    """Distances that grow by `slope` without backtracking and by `drift` at the first leaf, per horizon."""
    settings = Settings(horizons=(2, 8, 14), dyck_lengths=(4,))
    rows = np.ones((3, 1))
    bits = {
        "no backtracking": 0.6 + slope * rows * np.arange(3),
        "first leaf": 0.1 + drift * rows * np.arange(3),
        "stationary": np.full((3, 3), error),
        "p-value": np.array([[0.5 * (error == 0), np.nan, np.nan]] * 3),
    }
    dyck = {"no backtracking": 0.2 + slope * np.linspace(1, 2, 5)[:, None], "first leaf": np.full((5, 1), 0.2)}
    dyck |= {f"chi-square, {name}": values for name, values in list(dyck.items())} | {
        "validity": np.full((5, 1), 1 - error)
    }
    walks = {"validity": np.ones((2, 5)), "steps": steps * 2 * 12**2 * np.linspace(0.99, 1.01, 5) * np.ones((2, 1))}
    return Results(settings, bits, dyck, walks)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.05, 0.001), results(-0.05, 0.5, error=0.1, steps=3.0))


def test_without_backtracking_the_distance_is_one_between_two_binomial_distributions() -> None:
    """The string is H−1 biased coins and a fair one."""
    for horizon, error in ((4, 0.3), (8, 0.1), (10, 0.5)):
        heads = np.arange(horizon)
        biased = stats.binom.pmf(heads, horizon - 1, (1 + error) / 2)
        fair = stats.binom.pmf(heads, horizon - 1, 0.5)
        found = solve_bits(Bits(horizon, error, 0))
        assert found["no backtracking"] == pytest.approx(0.5 * np.abs(biased - fair).sum(), abs=1e-12)


def test_the_exact_claims_hold_in_a_small_run() -> None:
    changes = {"seeds": 2, "horizons": (2, 8, 14), "dyck_lengths": (4,), "simulated": 4, "runs": 50}
    outcome = study.run(study.config("quick", **changes), LAB)
    exact = [finding for finding in outcome.findings if finding.kind == "exact"]
    assert len(outcome.findings) == 8 and all(finding.verdict == "holds" for finding in exact)
    assert set(outcome.figures) == {"distance"} and set(outcome.tables) == {
        "bits: distance to the target",
        "Dyck words",
    }


def test_claims_about_horizons_that_were_left_out_are_not_measured() -> None:
    short = replace(results(0.05, 0.0), settings=Settings(horizons=(2, 4, 6), dyck_lengths=(4,)))
    outcome = study.judge(short)
    assert set(outcome.unmeasured) == {"verifier/error-amplification.bounded", "verifier/error-amplification.factor"}
