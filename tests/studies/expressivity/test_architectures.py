"""The claims of expressivity/architectures on made-up runs; the families have equal numbers of weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Runs, Training
from sandlab.models.base import build
from sandlab.studies.expressivity.architectures import FAMILIES, QUICK, Results, study


def runs(accuracy: float) -> Runs:
    values = accuracy + 1e-3 * np.arange(3)[:, None]
    return Runs((0, 1, 2), np.array([0]), values, {"accuracy": values}, parameters=100)


def results(table: dict[str, tuple[float, ...]]) -> Results:
    return Results({task: dict(zip(FAMILIES, map(runs, row))) for task, row in table.items()})


def test_every_claim_can_hold_and_can_fail() -> None:
    good = results({
        "copying": (0.99, 0.3, 0.5, 0.4, 0.98), "recall": (0.99, 0.2, 0.3, 0.5, 0.98),
        "parity": (0.6, 0.99, 1.0, 0.55, 0.6), "S5": (0.3, 0.7, 0.95, 0.3, 0.93),
    })  # fmt: skip
    bad = results({
        "copying": (0.4, 0.6, 0.9, 0.9, 0.5), "recall": (0.3, 0.8, 0.9, 0.95, 0.3),
        "parity": (0.6, 0.5, 0.5, 0.9, 0.6), "S5": (0.9, 0.2, 0.2, 0.3, 0.4),
    })  # fmt: skip
    check(study, good, bad)


@pytest.mark.parametrize("preset", ["quick", "full"])
def test_families_have_matching_numbers_of_weights(preset: str) -> None:
    runs = study.config(preset).runs
    for start in range(0, len(runs), len(FAMILIES)):
        counts = [build(each.model).parameter_count() for each in runs[start : start + len(FAMILIES)]]
        assert max(counts) / min(counts) < 1.35, counts


def test_a_small_run_measures_and_draws() -> None:
    training = Training(steps=2, batch_size=4, evals=1, eval_examples=8)
    small = replace(QUICK, runs=tuple(replace(each, training=training, seeds=2) for each in QUICK.runs))
    outcome = study.run(small, LAB)
    measured = {finding.claim for finding in outcome.findings} | set(outcome.unmeasured)
    assert measured == {claim.id for claim in study.due("quick")}
    assert set(outcome.figures) == {"accuracy"}
