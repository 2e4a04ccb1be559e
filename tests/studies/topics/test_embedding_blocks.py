"""The study of embeddings: claims on made-up Gram matrices, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.circuits.topics.optima import embedding_optimum
from sandlab.learning.experiment import Training
from sandlab.studies.topics._shared import PANELS
from sandlab.studies.topics.embedding_blocks import QUICK, Results, study
from sandlab.worlds.topics.masking import MaskedStatistics

NAMES = (*PANELS, *(f"{name}, alone" for name in PANELS))


def results(matrix: np.ndarray) -> Results:
    noise = np.random.default_rng(0).normal(scale=1e-3, size=(3, 101, 101))
    return Results(dict.fromkeys(NAMES, matrix + noise), dict.fromkeys(NAMES, np.ones(3)))


def test_every_claim_can_hold_and_can_fail() -> None:
    blocks, _ = embedding_optimum(MaskedStatistics(), "block")
    check(study, results(blocks.T @ blocks), results(1.01 * np.eye(101)))


def test_a_small_run_measures_every_claim_and_draws_both_conditions() -> None:
    small = Training(steps=4, batch_size=4, lr=0.01, evals=1, eval_examples=8)
    tiny = replace(QUICK, **{
        name: tuple(replace(each, training=small, seeds=2) for each in getattr(QUICK, name))
        for name in ("together", "alone")
    })  # fmt: skip
    outcome = study.run(tiny, LAB, "quick")
    assert len(outcome.findings) == len(study.claims)
    assert set(outcome.figures) == {"all weights trained", "embeddings alone"}
    alone = outcome.results.grams["squared, Adam, alone"]
    assert alone.shape == (2, 101, 101) and np.allclose(alone, alone.transpose(0, 2, 1))
