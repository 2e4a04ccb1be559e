"""The study of components: claims on made-up losses, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Training
from sandlab.studies.topics.components import NAMES, QUICK, Results, study

LEVELS = {"uniform attention": 3.149, "full": 2.909}


def results(alone: float, whole: float, squared: float) -> Results:
    noise = 1e-3 * np.random.default_rng(0).normal(size=3)
    losses = dict.fromkeys((*NAMES, "two stages", "alternating"), alone + noise)
    losses |= {"values and attention": whole + noise, "everything": whole + noise, "values, squared": squared + noise}
    return Results(losses, LEVELS)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(3.35, 3.32, 0.946), results(4.3, 3.3, 0.99), results(4.6, 4.6, 0.99))


def test_a_small_run_measures_every_claim_or_says_that_nothing_was_learnt() -> None:
    small = Training(steps=4, batch_size=4, lr=0.01, evals=1, eval_examples=8)
    runs = tuple(replace(each, training=small, seeds=2) for each in QUICK.runs)
    outcome = study.run(replace(QUICK, runs=runs, stage=small, seeds=2), LAB, "quick")
    due = {claim.id for claim in study.claims}
    assert {finding.claim for finding in outcome.findings} | set(outcome.unmeasured) == due
    assert set(outcome.results.losses) == {*NAMES, "two stages", "alternating"}
    assert set(outcome.figures) == {"bars"} and outcome.results.levels["full"] < outcome.results.levels["bag of words"]
