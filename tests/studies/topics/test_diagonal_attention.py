"""The study of attention over diagonal values: claims on made-up averages, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Training
from sandlab.studies.topics.diagonal_attention import QUICK, Averages, Results, joint, study


def averages(*values: float) -> Averages:
    noise = 1 + 1e-3 * np.random.default_rng(0).normal(size=(3, 3))
    return Averages(np.array(values) * noise, np.ones((3, 2, 2)), np.ones(3), np.ones(3))


def test_every_claim_can_hold_and_can_fail() -> None:
    good = {"diagonal values": averages(0.09, 0.0018, 0.0026), "block values": averages(0.012, 0.012, 0.0034)}
    bad = {"diagonal values": averages(0.008, 0.0082, 0.0078), "block values": averages(0.008, 0.008, 0.008)}
    check(study, Results(good), Results(bad))


def test_a_small_run_measures_every_claim_and_follows_the_levels() -> None:
    small = Training(steps=4, batch_size=4, lr=0.01, evals=2, eval_examples=8)
    tiny = replace(
        QUICK,
        diagonal=replace(QUICK.diagonal, training=small, seeds=2),
        blocks=replace(QUICK.blocks, training=small, seeds=2),
        joint=(replace(joint(0.01, 4, 2), training=small),),
        documents=20,
    )
    outcome = study.run(tiny, LAB, "quick")
    assert len(outcome.findings) == len(study.claims) and set(outcome.figures) == {"bars", "landscape-paths"}
    assert outcome.results.averages["block values"].levels.shape == (2, 3, 2)
    assert outcome.tables["average attention"][2]["runs"].endswith("of 2")
    np.testing.assert_allclose(outcome.results.averages["diagonal values"].diagonality, 1.0)
