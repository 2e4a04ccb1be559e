"""The study of training curves: claims on made-up runs, and a run in miniature."""

from __future__ import annotations

import numpy as np
import pytest
from automata_cases import runs, stored, tiny
from claim_cases import verdicts
from stand_in import LAB

from sandlab.studies.automata.training_curves import QUICK, Results, jump_shares, study


def results(curves: np.ndarray) -> Results:
    return Results({"C2": runs(metrics={"accuracy": curves})})


def test_every_claim_holds_on_jumps_and_none_on_ramps() -> None:
    steps = np.stack([np.repeat([0.5, 1.0], [first, 41 - first]) for first in (10, 15, 20, 25)])
    steps[:, 30] = 0.9 - 0.001 * np.arange(4)
    ramps = np.tile(np.linspace(0.5, 1.0, 41), (4, 1))
    assert set(verdicts(study, stored(study, results(steps))).values()) == {"holds"}
    assert verdicts(study, results(ramps)) == {"spread": "fails", "jumps": "fails", "falls": "fails"}


def test_runs_that_learn_nothing_have_no_jumps() -> None:
    noise = 0.5 + 0.01 * np.random.default_rng(0).normal(size=(4, 41))
    assert set(verdicts(study, results(noise)).values()) == {"fails"}


def test_the_share_of_a_jump_is_one_for_a_step_and_a_tenth_for_a_ramp() -> None:
    step, ramp = np.repeat([0.5, 1.0], [20, 21]), np.linspace(0.5, 1.0, 41)
    assert jump_shares(np.stack([step, ramp])) == pytest.approx([1.0, 0.1])


def test_a_small_run_measures_every_claim_and_draws() -> None:
    outcome = study.run(tiny(QUICK), LAB)
    assert len(outcome.findings) == 3 and set(outcome.figures) == {"curves"} and len(outcome.tables["runs"]) == 2
    assert outcome.results.parity.shape == (2, 5)
