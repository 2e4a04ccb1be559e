"""The study of gradient norms: claims on made-up curves, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Runs, Training
from sandlab.lenses.ngrams.probes import LagMass, PopulationGradient
from sandlab.studies.ngrams.gradient_norm import QUICK, Results, Settings, study

STEPS = np.arange(0, 1000, 10)


def runs(loss: np.ndarray, gradient: np.ndarray, mass: list[list[float]], seeds: int = 10) -> Runs:
    """Runs with these curves and, at the end, these masses of two heads on lags 0 … 3."""
    noise = np.random.default_rng(0).normal(scale=1e-4, size=(seeds, len(STEPS)))
    masses = np.broadcast_to(np.array(mass), (seeds, len(STEPS), 2, 4)) + noise[:, :, None, None]
    metrics = {"loss": loss + noise, "gradient": gradient + noise, "mass": masses}
    return Runs(tuple(range(seeds)), STEPS, noise, metrics)


def test_every_claim_can_hold_and_can_fail() -> None:
    jump, line = np.where(STEPS < 500, 1.0, 0.8), 1 - STEPS / 5000
    burst, flat = np.where(np.abs(STEPS - 500) < 50, 0.3, 0.1), np.full(len(STEPS), 0.1)
    both, none = [[0, 0.5, 0.45, 0], [0, 0, 0, 0]], [[0, 0, 0, 0.9], [0, 0, 0, 0.9]]
    good = Results(runs(jump, burst, both), runs(jump, burst, both), [{}, {}])
    check(study, good, Results(runs(line, flat, none), runs(line, flat, none), [{}, {}]))


@pytest.mark.slow
def test_a_small_run_measures_every_claim_of_the_quick_preset() -> None:
    small = {
        "training": Training(steps=20, batch_size=8, lr=0.01, evals=20, eval_examples=32),
        "seeds": 1,
        "probes": (LagMass(2), PopulationGradient(32)),
    }
    outcome = study.run(Settings(replace(QUICK.simplified, **small), replace(QUICK.feed_forward, **small)), LAB)
    due = {claim.id for claim in study.claims if "quick" in claim.presets}
    assert {finding.claim for finding in outcome.findings} | set(outcome.unmeasured) == due
    assert set(outcome.figures) == {"gradient"}
    assert outcome.results.simplified.metrics["gradient"].shape == (1, 21)
