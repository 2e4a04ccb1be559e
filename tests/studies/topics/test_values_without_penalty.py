"""The study of value matrices without a penalty: claims on made-up matrices, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.circuits.topics.optima import block_value
from sandlab.learning.experiment import Training
from sandlab.studies.topics._shared import PANELS
from sandlab.studies.topics.values_without_penalty import QUICK, Results, study
from sandlab.worlds.topics.masking import MaskedStatistics


def results(scale: float, shift: float = 0.0) -> Results:
    noise = np.random.default_rng(0).normal(scale=1e-3, size=(3, 101, 101))
    values = scale * block_value(MaskedStatistics()) + noise + shift
    return Results(dict.fromkeys(PANELS, values), dict.fromkeys(PANELS, np.ones(3)))


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(1.0), results(0.0, 0.5))


def test_a_small_run_measures_every_claim_and_draws_the_matrices() -> None:
    small = Training(steps=4, batch_size=4, lr=0.01, evals=1, eval_examples=8)
    tiny = replace(QUICK, panels=tuple(replace(each, training=small, seeds=2) for each in QUICK.panels))
    outcome = study.run(tiny, LAB, "quick")
    assert len(outcome.findings) == len(study.claims) and set(outcome.figures) == {"matrices"}
    assert all(each.training.weight_decay == 0 for each in QUICK.panels)
