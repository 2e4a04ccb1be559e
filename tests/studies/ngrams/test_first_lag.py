"""The study of the first lag: claims on made-up runs, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Runs, Training
from sandlab.studies.ngrams.first_lag import QUICK, Results, Settings, arrival, study


def runs(first: float, second: float, seeds: int = 32) -> Runs:
    """Two heads whose masses on lags 1 and 2 grow linearly to these values at step 1600."""
    steps = np.arange(0, 1601, 200)
    noise = np.random.default_rng(0).normal(scale=1e-3, size=(seeds, len(steps)))
    mass = np.zeros((seeds, len(steps), 2, 4))
    mass[:, :, 0, 1], mass[:, :, 1, 2] = first * steps / 1600 + noise, second * steps / 1600 + noise
    return Runs(tuple(range(seeds)), steps, noise, {"loss": noise, "mass": mass})


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, Results(runs(0.9, 0.05), runs(0.1, 0.05)), Results(runs(0.1, 0.9), runs(0.9, 0.1)))


def test_a_lag_that_never_arrives_arrives_after_the_end() -> None:
    assert arrival(runs(0.9, 0.05, seeds=1), 1).tolist() == [600]
    assert arrival(runs(0.9, 0.05, seeds=1), 2).tolist() == [1601]


def test_a_small_run_measures_every_claim() -> None:
    small = Training(steps=4, batch_size=8, lr=0.01, evals=2, eval_examples=32)
    settings = Settings(*(replace(each, training=small, seeds=2) for each in (QUICK.ordinary, QUICK.without_skip)))
    outcome = study.run(settings, LAB)
    assert {claim.split(".")[1] for claim in outcome.unmeasured} == {"no-lag-2-yet", "no-lag-2-at-all"}
    assert len(outcome.findings) == 2 and set(outcome.figures) == {"lags"}
    # Before training the first layer's attention is uniform over what came before.
    uniform = np.mean([1 / n for n in range(3, 33)])
    assert np.allclose(outcome.results.ordinary.metrics["mass"][:, 0], uniform, atol=0.02)
