"""The study of value matrices: claims on made-up matrices, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.circuits.topics.optima import block_value
from sandlab.learning.experiment import Training
from sandlab.lenses.topics.matrices import block_contrast
from sandlab.studies.topics._shared import PANELS, Ridge
from sandlab.studies.topics.value_blocks import QUICK, Results, study
from sandlab.worlds.topics.masking import MaskedStatistics


def results(scale: float) -> Results:
    noise = np.random.default_rng(0).normal(scale=1e-3, size=(3, 101, 101))
    values = scale * block_value(MaskedStatistics()) + noise
    return Results(dict.fromkeys(PANELS, values), dict.fromkeys(PANELS, np.ones(3)), values[0])


def test_every_claim_can_hold_and_can_fail() -> None:
    flat = results(0.0)
    high = Results({name: value + 0.5 for name, value in flat.values.items()}, flat.losses, flat.ridge)
    check(study, results(1.0), flat, high)


def test_a_small_run_measures_every_claim_and_draws_the_matrices() -> None:
    small = Training(steps=4, batch_size=4, lr=0.01, evals=1, eval_examples=8)
    tiny = replace(
        QUICK, panels=tuple(replace(each, training=small, seeds=2) for each in QUICK.panels), ridge=Ridge(2000, 1e-4)
    )
    outcome = study.run(tiny, LAB, "quick")
    assert len(outcome.findings) == len(study.claims) and set(outcome.figures) == {"matrices"}
    assert outcome.results.values[PANELS[0]].shape == (2, 101, 101)
    assert len(outcome.tables["value matrices"]) == 4
    assert block_contrast(outcome.results.ridge, 10).auc > 0.95  # the exact minimiser has blocks
