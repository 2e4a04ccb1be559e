"""The study of average attention: claims on made-up averages, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Training
from sandlab.studies.topics.attention_averages import ADAM, QUICK, STAGE_TWO, Averages, Results, study


def results(true: tuple[float, ...], shifted: tuple[float, ...]) -> Results:
    noise = 1 + 1e-3 * np.random.default_rng(0).normal(size=(3, 3))
    each = Averages(np.array(true) * noise, np.array(shifted) * noise, np.ones(3), np.ones(3))
    return Results(dict.fromkeys((*ADAM, STAGE_TWO), each))


def test_every_claim_can_hold_and_can_fail() -> None:
    uniform = (0.0079, 0.0079, 0.0079)
    check(study, results((0.0118, 0.0116, 0.0034), (0.0118, 0.0104, 0.0067)), results(uniform, uniform))


def test_a_small_run_measures_every_claim_and_attention_keeps_its_mean() -> None:
    small = Training(steps=4, batch_size=4, lr=0.01, evals=1, eval_examples=8)
    tiny = replace(
        QUICK,
        joint=tuple(replace(each, training=small, seeds=2) for each in QUICK.joint),
        stage_two=replace(QUICK.stage_two, training=small, seeds=2),
        documents=20,
    )
    outcome = study.run(tiny, LAB, "quick")
    assert len(outcome.findings) == len(study.claims) and set(outcome.figures) == {"bars"}
    for each in outcome.results.averages.values():
        assert each.true.shape == (2, 3) and each.conserved == pytest.approx(np.ones(2), rel=1e-4)
