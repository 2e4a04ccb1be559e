"""The study of values trained with attention: claims on made-up matrices, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.circuits.topics.optima import block_value, diagonal_value
from sandlab.learning.experiment import Training
from sandlab.studies.topics._shared import PANELS
from sandlab.studies.topics.joint_values import QUICK, Results, study
from sandlab.worlds.topics.masking import MaskedStatistics


def results(blocks: np.ndarray, last: np.ndarray) -> Results:
    noise = np.random.default_rng(0).normal(scale=1e-3, size=(3, 2, 101, 101))
    values = dict.fromkeys(PANELS, blocks + noise) | {"squared, Adam": last + noise}
    return Results(np.arange(2), values, dict.fromkeys(PANELS, np.ones(3)))


def test_every_claim_can_hold_and_can_fail() -> None:
    s = MaskedStatistics()
    blocks, diagonal = block_value(s), diagonal_value(s)
    check(study, results(blocks, diagonal), results(np.full_like(blocks, 0.5), blocks))


def test_a_small_run_measures_every_claim_and_shows_the_matrix_along_training() -> None:
    small = Training(steps=4, batch_size=4, lr=0.01, evals=2, eval_examples=8)
    tiny = replace(QUICK, panels=tuple(replace(each, training=small, seeds=2) for each in QUICK.panels))
    outcome = study.run(tiny, LAB, "quick")
    assert len(outcome.findings) == len(study.claims) and set(outcome.figures) == {"panels", "along training"}
    value = outcome.results.values[PANELS[0]]
    assert value.shape == (2, 3, 101, 101) and not np.array_equal(value[:, 0], value[:, -1])
