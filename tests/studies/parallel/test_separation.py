"""The claims of parallel/separation on made-up shares, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.parallel.separation import QUICK, Results, study


def results(one: float, ever: float, exact: float, stuck: float, ratio: float) -> Results:
    maps = np.ones((6, 6, 2))
    maps[0, 0, 1] = ratio
    noise = 1e-6 * np.arange(20)
    return Results(93, np.full((2, 20), one) + noise, np.full((2, 20), ever) + noise, exact, 0.975, np.full(3, stuck),
                   QUICK.cliques, QUICK.couplings, maps)  # fmt: skip


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.987, 0.0, 0.987, 0.99, 1.1), results(0.5, 0.5, 0.9, 0.3, 100.0))


def test_a_small_run_measures_every_claim() -> None:
    small = replace(QUICK, chains=20, seeds=3, horizon=50, cliques=(4, 8), couplings=(0.1, 0.8))
    outcome = study.run(small, LAB, "quick")
    assert len(outcome.findings) == len(study.claims) and set(outcome.figures) == {"expected-steps"}
    assert outcome.results.reached.max() == 0
