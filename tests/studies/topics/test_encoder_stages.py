"""The study of stages in an encoder: claims on made-up norms, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.topics.encoder_stages import QUICK, Results, doubling_times, study

STEPS = np.arange(401)


def results(attention: int, value: int, turn: float) -> Results:
    """Norms of three seeds in two layers that grow from these steps on; rotation that decays or grows."""

    def curves(start: int) -> np.ndarray:
        starts = start + np.arange(3)[:, None, None] + np.arange(2)
        return 1 + 0.1 * np.clip(STEPS[:, None] - starts, 0, 100)

    rotation = np.exp(-turn * STEPS / 100)[:, None] * (1 + 0.01 * np.arange(3)[:, None, None]) * np.ones(2)
    norms = {"key": curves(attention), "query": curves(attention), "value": curves(value)}
    return Results(STEPS, {"0.5": norms}, {"0.5": rotation})


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(150, 20, 1.0), results(20, 150, -1.0), results(1000, 20, 1.0))


def test_a_small_run_measures_every_layer_at_every_step() -> None:
    tiny = replace(
        QUICK,
        size=150,
        topics=3,
        layers=2,
        heads=2,
        width=8,
        length=12,
        seeds=2,
        training=replace(QUICK.training, steps=12, evals=12, batch_size=2),
    )
    outcome = study.run(tiny, LAB, "quick")
    due = {claim.id for claim in study.claims}
    assert {finding.claim for finding in outcome.findings} | set(outcome.unmeasured) == due
    assert outcome.results.rotation["0.5"].shape == (2, 13, 2) and set(outcome.figures) == {"norms"}
    assert np.isfinite(outcome.results.rotation["0.5"][:, 10:]).all()


def test_a_training_that_broke_down_is_never_the_best() -> None:
    found = results(150, 20, 1.0)
    broken = {part: np.where(STEPS[:, None] > 200, np.nan, curves) for part, curves in found.norms["0.5"].items()}
    both = Results(STEPS, found.norms | {"10": broken}, found.rotation | {"10": found.rotation["0.5"]})
    assert both.best(0) == "0.5" and both.lead("10", 0) == -np.inf
    assert {row["learning rate"]: row["broke down"] for row in doubling_times(both)} == {
        "0.5": "0 of 3",
        "10": "3 of 3",
    }
