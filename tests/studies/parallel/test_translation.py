"""The claims of parallel/translation on made-up scores, and a tiny run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from parallel_cases import tiny
from stand_in import LAB

from sandlab.studies.parallel.translation import QUICK, Results, study


def scores(valid: list[float], stutter: float, passes: float) -> np.ndarray:
    rows = [[value, stutter, stutter / 5, 50.0, passes] for value in valid]
    return np.array([rows] * 3) + 1e-4 * np.arange(3)[:, None, None]


def test_every_claim_can_hold_and_can_fail() -> None:
    good = Results(scores([0.6, 0.7, 0.7, 0.7], 0.3, 2.0), scores([0.99] * 4, 0.0, 2.0), scores([0.9], 0.01, 7.0)[:, 0])
    bad = Results(scores([0.9, 0.5, 0.4, 0.8], 0.1, 7.0), scores([0.2] * 4, 0.0, 2.0), scores([0.1], 0.4, 5.0)[:, 0])
    check(study, good, bad)


def test_a_tiny_run_measures_every_claim() -> None:
    small = replace(QUICK, **{name: tiny(getattr(QUICK, name)) for name in ("raw", "distilled", "autoregressive")})
    outcome = study.run(replace(small, sentences=12), LAB, "quick")
    assert len(outcome.findings) + len(outcome.unmeasured) == len(study.claims)
    assert outcome.results.raw.shape == (2, 4, 5) and "passes-over-a-sentence" in outcome.figures
