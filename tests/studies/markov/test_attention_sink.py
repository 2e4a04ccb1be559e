"""The study of attention sinks: claims on made-up curves, and a small run."""

from __future__ import annotations

import numpy as np
import pytest
from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.markov.attention_sink import QUICK, study


def runs(dormant: float, active: float, value: float, loss: float) -> Runs:
    curves = {"dormant": dormant, "active": active, "value": value, "others": 1.0, "stream": 1.0, "loss": loss}
    final = {"oracle": 1.0, "bigram": 2.0, "pattern": np.eye(4), "triggers": np.array([False, False, True, False])}
    return made_up({name: [0.5, end] for name, end in curves.items()}, final)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, runs(0.9, 0.1, 0.1, loss=1.1), runs(0.2, 0.6, 1.0, loss=1.9))


def test_a_small_run_measures_every_claim_and_starts_with_uniform_attention() -> None:
    found, outcome = measured(study, tiny(QUICK), LAB)
    assert found["sink"] == "fails"
    # Attention of the untrained model is nearly uniform: 1/(t + 1) on the start token, t = 2 … 31.
    expected = np.mean([1 / (t + 1) for t in range(2, 32)])
    assert outcome.results.metrics["dormant"][:, 0] == pytest.approx(expected, abs=0.05)
    assert set(outcome.figures) == {"sink"}
    assert [row["seed"] for row in outcome.tables["norms"]] == [0, 1]
