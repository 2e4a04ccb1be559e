"""The claims of parallel/teacher-distillation on made-up scores, and a tiny run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from parallel_cases import tiny
from stand_in import LAB

from sandlab.studies.parallel.refinement.teacher_distillation import QUICK, Results, study


def scores(valid: float, stutter: float) -> np.ndarray:
    return np.array([[[valid, stutter, 0.1, 50.0, 2.0]] * 2] * 3) + 1e-4 * np.arange(3)[:, None, None]


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, Results(scores(0.6, 0.3), scores(0.8, 0.1)), Results(scores(0.6, 0.1), scores(0.5, 0.3)))


def test_a_tiny_run_measures_every_claim() -> None:
    small = replace(QUICK, student=tiny(QUICK.student), teacher=tiny(QUICK.teacher), pairs=16, sentences=8)
    outcome = study.run(small, LAB, "quick")
    assert len(outcome.findings) == len(study.claims) and outcome.results.taught.shape == (2, 2, 5)
