"""Sharpening: claims on made-up heads, and a tiny run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from flip_flop_cases import claims, runs, tiny
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.claims import NotMeasured
from sandlab.studies.flip_flop.sharpening import QUICK, Results, study


def head(entropy: float, mass: float, kind: float, itself: float, errors: tuple[float, float, float]) -> Runs:
    scores = {"mass_idle": [mass], "type_mass": [kind], "hit_write": [itself]}
    return runs(entropy=[entropy], scores=scores, errors=list(errors), maps=np.zeros((1, 1, 8, 8)))


def results(plain: Runs, sharp: Runs, plain_rare: Runs, sharp_rare: Runs) -> Results:
    """Four heads, and two of weak sharpening, of which the one with short waits is wrong when the strong one is."""
    weak = head(0.2, 0.9, 0.95, 0.1, (0.1, 0.2, 0.3)) if sharp_rare.final["errors"][0, 2] > 0.1 else sharp_rare
    heads = {(0.9, 0.0): plain, (0.9, 0.1): sharp, (0.5, 0.0): plain_rare, (0.5, 0.1): sharp_rare}
    return Results(heads | {(0.9, 0.01): sharp, (0.5, 0.01): weak})


def test_every_claim_can_hold_and_can_fail() -> None:
    plain, sharp = head(1.0, 0.3, 0.8, 0.9, (0.0, 0.0, 0.0)), head(0.1, 0.9, 0.95, 0.9, (0.001, 0.0, 0.0))
    rare = head(0.1, 0.9, 0.9, 0.1, (0.1, 0.005, 0.3))
    bad = head(1.0, 0.9, 0.5, 0.9, (0.1, 0.0, 0.0))
    check(study, results(plain, sharp, rare, rare), results(bad, bad, plain, plain), results(bad, plain, plain, plain))


def test_heads_that_were_not_trained_are_not_measured() -> None:
    with pytest.raises(NotMeasured, match="no head was trained"):
        Results({}).head(0.9, 0.1)


def test_a_small_run_measures_every_claim() -> None:
    outcome = study.run(replace(tiny(QUICK), strengths=(0.0, 0.1)), LAB, "full")
    assert {finding.claim for finding in outcome.findings} == claims(study, "full")
    assert len(outcome.tables["heads"]) == 4 and set(outcome.figures) == {"maps"}
