"""The study of stages: claims on made-up runs, and the reading of plateaus."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Runs, Training
from sandlab.studies.ngrams._shared import estimator_losses
from sandlab.studies.ngrams.stages import QUICK, Results, Task, study
from sandlab.worlds.ngrams.in_context import InContextNgrams

LEVELS = {"uniform": 1.1, "unigram": 1.0, "bigram": 0.9, "trigram": 0.72}


def runs(levels: list[float], names: list[str], lags: list[int], seeds: int = 12) -> Runs:
    """Curves that stand on each level for a while, with the nearest estimator and the lag a head looks at there."""
    each = 40
    noise = np.random.default_rng(0).normal(scale=1e-4, size=(seeds, each * len(levels)))
    mass = np.zeros((seeds, each * len(levels), 2, 4))
    mass[:, np.arange(each * len(levels)), 0, np.repeat(lags, each)] = 0.8
    return Runs(
        seeds=tuple(range(seeds)),
        eval_steps=np.arange(each * len(levels)) * 10,
        loss=noise,
        metrics={
            "loss": np.repeat(levels, each) + noise,
            "mass": mass,
            "maps": np.zeros((seeds, each * len(levels), 2, 6, 6)),
            "nearest": np.tile(np.repeat(names, each), (seeds, 1)),
        },
    )


def test_every_claim_can_hold_and_can_fail() -> None:
    three = runs([1.0, 0.9, 0.9, 0.74], ["unigram", "bigram", "bigram", "trigram"], [0, 1, 1, 2])
    flat = runs([1.1, 1.1], ["uniform", "uniform"], [0, 0])
    wrong = runs([1.1, 1.0, 0.97], ["trigram", "trigram", "unigram"], [0, 2, 1])
    pairs = ((three, three), (wrong, flat), (flat, wrong))
    check(study, *(Results(Task(each, LEVELS), Task(again, LEVELS | {"trigram": 0.9})) for each, again in pairs))


def test_longer_contexts_have_lower_losses() -> None:
    losses = estimator_losses(InContextNgrams(states=3, order=2, length=64, concentration=0.5))
    assert losses["uniform"] == pytest.approx(np.log(3))
    assert losses["uniform"] > losses["unigram"] > losses["bigram"] > losses["trigram"]


@pytest.mark.slow
def test_a_small_run_measures_every_claim_of_the_quick_preset_and_draws_both_tasks() -> None:
    small = Training(steps=12, batch_size=16, lr=0.01, evals=12, eval_examples=64)
    settings = replace(QUICK, **{
        name: replace(getattr(QUICK, name), training=small, seeds=2) for name in ("trigram", "fourgram")
    })  # fmt: skip
    outcome = study.run(settings, LAB, "quick")
    due = {claim.id for claim in study.claims if "quick" in claim.presets}
    assert {finding.claim for finding in outcome.findings} | set(outcome.unmeasured) == due
    assert set(outcome.figures) == {"trigram", "4-gram"}
    assert outcome.results.trigram.loss.shape == (2, 13)
