"""The claims of parallel/passes-frontier on made-up points, and a tiny run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from parallel_cases import tiny
from stand_in import LAB

from sandlab.studies.parallel.passes_frontier import QUICK, Results, study


def points(*accuracy: float) -> np.ndarray:
    rows = np.array([[5.0, value] for value in accuracy])
    return np.stack([rows] * 3) + 1e-4 * np.arange(3)[:, None, None]


def test_every_claim_can_hold_and_can_fail() -> None:
    good = Results(points(0.2, 0.5, 0.6, 0.5, 0.95), points(0.9, 1.0), points(0.6, 0.65, 0.9, 0.95, 1.0))
    bad = Results(points(0.9, 0.5, 0.6, 0.5, 0.3), points(0.9, 0.7), points(0.6, 0.65, 0.3, 0.95, 1.0))
    check(study, good, bad)


def test_a_tiny_run_measures_every_claim() -> None:
    parts = {name: tiny(getattr(QUICK, name)) for name in ("masked", "causal", "refining", "writing")}
    outcome = study.run(replace(QUICK, **parts, strings=12), LAB, "quick")
    assert len(outcome.findings) == len(study.claims) and outcome.results.translation.shape == (2, 5, 2)
    assert outcome.results.parallel[0, :, 0].tolist() == [1, 5, 13, 45, 10]
