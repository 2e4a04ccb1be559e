"""Remedies on the sparse tail: claims on made-up errors, and a tiny run."""

from __future__ import annotations

import pytest
from claim_cases import check
from flip_flop_cases import claims, reads, tiny
from stand_in import LAB

from sandlab.studies.flip_flop import _remedies
from sandlab.studies.flip_flop._remedies import FAMILY, Results, Settings
from sandlab.studies.flip_flop.sparse_remedies import COMPARED, QUICK, study


def results(inside: float, before: float, **others: float) -> Results:
    """The sparse error of the baseline, and those of other families."""
    errors = {label: others.get(FAMILY[label], before) for label in COMPARED}
    return Results({label: reads(inside, error, 0.0) for label, error in errors.items()})


def test_every_claim_can_hold_and_can_fail() -> None:
    good = results(0.0, 0.1, data=0.001, scale=0.05, regulariser=1e-4, sharpening=1e-3, architecture=0.2, recurrent=0.0)
    bad = results(0.1, 0.1, scale=0.2, regulariser=0.2, sharpening=0.2, architecture=0.001, recurrent=0.1)
    check(study, good, bad, results(0.1, 0.001))


def test_a_small_run_measures_every_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_remedies, "RESUMED_STEPS", 4)
    outcome = study.run(Settings(tiny(QUICK)), LAB)
    assert {finding.claim for finding in outcome.findings} == claims(study, "quick")
