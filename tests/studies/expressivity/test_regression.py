"""The claims of expressivity/regression on made-up errors."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Runs, Training
from sandlab.studies.expressivity.regression import Results, settings, study
from sandlab.worlds.expressivity.regression import InContextRegression

KNOWN = {
    "ridge (Bayes)": np.array([1.1, 0.7, 0.4, 0.2]), "zero": np.full(4, 1.1),
    "least squares": np.array([1.1, 2.0, 0.9, 0.25]), "one step": np.array([1.1, 0.8, 0.6, 0.5]),
}  # fmt: skip


def results(errors: list[float]) -> Results:
    values = np.array(errors) + 1e-3 * np.arange(3)[:, None]
    return Results(Runs((0, 1, 2), np.array([0]), values, {"errors": values[:, None]}), KNOWN)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results([1.1, 0.75, 0.45, 0.25]), results([1.0, 1.0, 1.0, 1.0]))


def test_a_small_run_measures_and_draws() -> None:
    training = Training(steps=3, batch_size=8, objective="squared-error", evals=1, eval_examples=64)
    small = settings(InContextRegression(dim=2, pairs=4), training, layers=1, width=8, seeds=2)
    outcome = study.run(small, LAB)
    assert {finding.claim for finding in outcome.findings} == {claim.id for claim in study.claims}
    assert set(outcome.figures) == {"errors"}
