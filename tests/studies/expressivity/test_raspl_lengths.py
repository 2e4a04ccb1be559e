"""The claims of expressivity/raspl-lengths on made-up shares."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Training
from sandlab.studies.expressivity.raspl_lengths import Results, settings, study

TASKS = ["majority", "count", "copy-unique", "copy-repeat", "parity"]


def results(at_training: float, doubled: dict[str, float]) -> Results:
    jitter = 1e-3 * np.arange(3)
    match = np.zeros((5, 2, 3, 2))
    for row, task in enumerate(TASKS):
        match[row, 1, :, 0], match[row, 1, :, 1] = at_training - jitter, doubled[task] - jitter * (row + 1)
    return Results(TASKS, ["none", "rotary"], 10, [10, 20], match, [6, 8, 9, 7, 30], [True, True, True, False, True])


def test_every_claim_can_hold_and_can_fail() -> None:
    good = results(0.95, dict(zip(TASKS, (0.9, 0.8, 0.7, 0.1, 0.05))))
    bad = results(0.5, dict(zip(TASKS, (0.1, 0.1, 0.1, 0.5, 0.9))))
    check(study, good, bad)


def test_the_better_position_code_counts() -> None:
    assert results(0.9, dict.fromkeys(TASKS, 0.4)).at("count", 20).mean() > 0.39


def test_a_small_run_measures_and_draws() -> None:
    training = Training(steps=3, batch_size=4, evals=1, eval_examples=8)
    tasks = ("majority", "count", "copy-unique", "parity")
    small = settings(tasks, ("none",), 3, (3, 6), training, layers=1, width=8, seeds=2, pool=8)
    outcome = study.run(small, LAB)
    assert {finding.claim for finding in outcome.findings} == {claim.id for claim in study.due("quick")}
    assert outcome.results.match.shape == (4, 1, 2, 2) and set(outcome.figures) == {"lengths"}
