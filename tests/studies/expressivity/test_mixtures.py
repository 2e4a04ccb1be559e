"""The claims of expressivity/mixtures on made-up runs."""

from __future__ import annotations

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Runs, Training
from sandlab.studies.expressivity.mixtures import Results, settings, study
from sandlab.worlds.automata.counters import Memory
from sandlab.worlds.mixture import Mixture
from sandlab.worlds.recall import AssociativeRecall, InductionTask

NAMES = ["induction", "recall", "memory"]


def runs(final: float, learnt_at: int, factor: int = 1) -> Runs:
    steps = np.arange(0, 11) * 10 * factor
    curve = np.where(np.arange(11) >= learnt_at, final, 0.1)
    parts = np.repeat((curve + 1e-4 * np.arange(4)[:, None])[..., None], 3, axis=-1)
    return Runs(tuple(range(4)), steps, parts[..., 0], {"parts": parts})


def test_every_claim_can_hold_and_can_fail() -> None:
    good = Results(NAMES, 64, [runs(0.97, 6)] * 3, runs(0.96, 4, 3))
    bad = Results(NAMES, 64, [runs(0.97, 2)] * 3, runs(0.6, 9, 3))
    check(study, good, bad)


def test_sequences_of_a_part_are_counted() -> None:
    results = Results(NAMES, 60, [runs(0.97, 5)] * 3, runs(0.97, 5, 3))
    assert results.needed(0, False).tolist() == results.needed(0, True).tolist() == [50 * 60] * 4


@pytest.mark.slow
def test_a_small_run_measures_and_draws() -> None:
    world = Mixture((InductionTask(4, 6), AssociativeRecall(4, 4, 2, 2), Memory(values=2, length=6)))
    training = Training(steps=4, batch_size=8, evals=2, eval_examples=16)
    outcome = study.run(settings(world, tuple(NAMES), training, width=8, seeds=2), LAB)
    assert len(outcome.findings) + len(outcome.unmeasured) == len(study.claims)
    assert set(outcome.figures) == {"curves"}
