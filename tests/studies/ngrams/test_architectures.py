"""The study of architectures: claims on made-up runs, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Runs, Training
from sandlab.studies.ngrams.architectures import LEARNED, ONE_HOT, QUICK, Results, Settings, first_step_below, study


def runs(losses: list[float], masses: tuple[float, float], seeds: int = 8) -> Runs:
    """Loss curves with these values; at the end one head has these masses on lags 1 and 2."""
    noise = np.random.default_rng(0).normal(scale=1e-3, size=(seeds, len(losses)))
    mass = np.zeros((seeds, len(losses), 2, 4))
    mass[:, -1, 0, 1], mass[:, -1, 1, 2] = masses
    steps = np.arange(len(losses)) * 100
    return Runs(tuple(range(seeds)), steps, noise, {"loss": np.array(losses) + noise, "mass": mass})


def test_every_claim_can_hold_and_can_fail() -> None:
    fast, slow = runs([1.1, 0.98, 0.97, 0.97], (0.9, 0.8)), runs([1.1, 1.05, 1.04, 1.02], (0.9, 0.1))
    check(study, Results({ONE_HOT: fast, LEARNED: slow}, {}), Results({ONE_HOT: slow, LEARNED: fast}, {}))


def test_a_curve_that_never_falls_below_the_level_counts_as_the_last_step() -> None:
    assert first_step_below(runs([1.2, 0.9, 0.8], (1, 1), seeds=1)).tolist() == [100]
    assert first_step_below(runs([1.2, 1.1, 1.1], (1, 1), seeds=1)).tolist() == [200]


def test_a_small_run_of_every_architecture_draws_its_figure() -> None:
    training = Training(steps=2, batch_size=8, lr=0.005, evals=2, eval_examples=32)
    names = study.presets["full"].models
    outcome = study.run(Settings(replace(QUICK, training=training, seeds=2), names), LAB, "full")
    assert set(outcome.results.runs) == set(names) and len(names) == 5
    assert set(outcome.figures) == {"loss"} and not outcome.unmeasured
