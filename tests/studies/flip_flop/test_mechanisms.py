"""Mechanisms: claims on made-up models, and a tiny run."""

from __future__ import annotations

import numpy as np
import pytest
from claim_cases import check
from flip_flop_cases import claims, runs, tiny
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.flip_flop.mechanisms import QUICK, Results, study


def model(entropy: float, later: float, hit: float, norm: float, distance: float, misleading: float) -> Runs:
    return runs(
        metrics={"norm": [norm] * 3, "distances": np.full((3, 2, 6), distance)},
        errors=[0.0, 0.0, 0.1],
        entropy=[entropy, later],
        scores={"hit_idle": [0.1, hit]},
        maps=np.zeros((2, 2, 8, 8)),
        misleading_first=[misleading, misleading / 2, misleading / 3],
        misleading_last=[0.5, 0.0, 0.0],
    )


def test_every_claim_can_hold_and_can_fail() -> None:
    plain, sharp = model(1.0, 1.0, 0.5, 9.0, 0.5, 0.1), model(0.1, 0.1, 0.99, 8.0, 0.9, 0.0)
    good = Results(plain, sharp, model(0.1, 0.8, 0.99, 8.0, 0.9, 0.0))
    worse = model(0.1, 0.1, 0.99, 8.0, 0.9, -0.1)
    check(study, good, Results(worse, plain, model(0.1, 0.2, 0.9, 8.0, 0.9, 0.0)))


@pytest.mark.slow
def test_a_small_run_measures_every_claim() -> None:
    outcome = study.run(tiny(QUICK), LAB)
    assert {finding.claim for finding in outcome.findings} == claims(study, "quick")
    assert set(outcome.figures) == {"maps", "head-differences"} and set(outcome.tables) == {"errors"}
    assert outcome.results.plain.final["maps"].shape == (2, 2, 4, 8, 8)
