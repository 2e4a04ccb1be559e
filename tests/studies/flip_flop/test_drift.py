"""Attention drift: claims on made-up heads, and a tiny run."""

from __future__ import annotations

import numpy as np
import pytest
from claim_cases import check
from flip_flop_cases import claims, runs, tiny
from stand_in import LAB

from sandlab.lenses.flip_flop.probes import NEVER
from sandlab.studies.claims import NotMeasured
from sandlab.studies.flip_flop.drift import QUICK, Results, curvature, drifts, predicted, study


def results(
    accuracy: float, curvature: float, first: float, last: float, measured: int, expected: int = 100
) -> Results:
    attention = np.linspace(first, last, 80)
    heads = runs(
        metrics={"accuracy": [0.5, accuracy]},
        one_write=attention,
        two_writes=attention,
        curvature=curvature,
        predicted=[expected, NEVER],
        measured=[measured, NEVER],
    )
    return Results(heads, length=48)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.99, -0.3, 0.9, 0.01, 101), results(0.6, 0.0, 0.2, 0.3, 200))


def test_untrained_heads_show_no_drift_and_heads_that_never_fail_are_not_compared() -> None:
    idle = results(0.5, -0.3, 0.01, 0.001, 101)
    assert drifts(idle).tolist() == [1.0] * 8 and curvature(idle).tolist() == [0.0] * 8
    with pytest.raises(NotMeasured, match="within 200"):
        predicted(results(0.99, -0.3, 0.9, 0.01, NEVER, expected=300))
    assert predicted(results(0.99, -0.3, 0.9, 0.01, NEVER)).min() > 1


def test_a_small_run_measures_every_claim() -> None:
    outcome = study.run(tiny(QUICK), LAB)
    assert {finding.claim for finding in outcome.findings} == claims(study, "quick")
    assert outcome.results.heads.final["one write"].shape == (2, 40)
    assert outcome.results.heads.final["two writes"].shape == (2, 7)
