"""Stabilisers: claims on made-up runs, and a run in miniature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from automata_cases import runs, stored, tiny
from claim_cases import check
from stand_in import LAB

from sandlab.studies.automata.stabilisers import GROUPS, MEMORIES, QUICK, Results, study


def results(noise: tuple[float, float], level: float, gain: float, patience: float) -> Results:
    """Noise of plain and averaged weights; what a second decay, dropout and patience change."""
    jitter = np.where(np.arange(20) % 2, 1.0, -1.0) * np.ones((3, 1))
    curves = [{"accuracy": 0.9 + noise[0] * jitter, "ema/accuracy": top + noise[1] * jitter} for top in (level, 0.9)]
    averages = {decay: runs(metrics=each) for decay, each in zip((0.9, 0.95), curves)}
    signs = dict.fromkeys(GROUPS, 1) | dict.fromkeys(MEMORIES, -1)
    dropouts = {
        rate: {name: runs(token=[0.9 + rate * gain * sign] * 3) for name, sign in signs.items()} for rate in (0.0, 0.1)
    }
    return Results(averages, dropouts, {1: runs(token=[0.8, 0.8]), 8: runs(token=[0.8 + patience] * 2)})


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, stored(study, results((0.02, 0.01), 0.9, 0.1, 0.1)), results((0.01, 0.02), 0.7, -0.1, -0.1))


def test_a_small_run_measures_every_claim_and_draws() -> None:
    outcome = study.run(tiny(QUICK), LAB)
    assert len(outcome.findings) == 2 and set(outcome.figures) == {"stabilisers"}
    assert outcome.results.averaged[0].shape == (2, 5)


@pytest.mark.slow
def test_all_comparisons_are_tabulated() -> None:
    chosen = replace(tiny(QUICK), decays=(0.8, 0.9), rates=(0.0, 0.1), patiences=(1, 2))
    outcome = study.run(chosen, LAB, "full")
    assert len(outcome.findings) == 6 and len(outcome.tables["stabilisers"]) == 2 + 2 * 4 + 2
