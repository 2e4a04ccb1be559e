"""The study of lengths: claims on made-up ratios, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.studies.topics.length_bias import QUICK, Results, study


def test_every_claim_can_hold_and_can_fail() -> None:
    noise = 1e-3 * np.random.default_rng(0).normal(size=8)
    check(study, Results(1.4 + noise, 1 + noise), Results(0.98 + noise, 1.05 + noise))


def test_a_small_run_shows_the_bias_and_its_correction() -> None:
    outcome = study.run(replace(QUICK, documents=100, seeds=3), LAB, "quick")
    assert (outcome.results.raw > 1.05).all()
    assert outcome.results.corrected == pytest.approx(np.ones(3), abs=0.01)
    assert set(outcome.figures) == {"points"}
