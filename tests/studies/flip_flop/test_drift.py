"""Attention drift: claims on made-up heads, and a tiny run."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from flip_flop_cases import claims, runs, tiny
from stand_in import LAB

from sandlab.lenses.flip_flop.probes import NEVER
from sandlab.studies.flip_flop.drift import QUICK, Results, study


def results(accuracy: float, curvature: float, first: float, last: float, measured: int) -> Results:
    attention = np.linspace(first, last, 80)
    heads = runs(
        metrics={"accuracy": [0.5, accuracy]},
        one_write=attention,
        two_writes=attention,
        curvature=curvature,
        predicted=[100, NEVER],
        measured=[measured, NEVER],
    )
    return Results(heads, length=48)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.99, -0.3, 0.9, 0.01, 101), results(0.6, 0.0, 0.2, 0.3, 200))


def test_a_small_run_measures_every_claim() -> None:
    outcome = study.run(tiny(QUICK), LAB)
    assert {finding.claim for finding in outcome.findings} == claims(study, "quick")
    assert outcome.results.heads.final["one write"].shape == (2, 40)
    assert outcome.results.heads.final["two writes"].shape == (2, 7)
