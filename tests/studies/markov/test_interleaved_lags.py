"""The study of interleaved chains: claims on made-up runs, and a small run."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.markov.interleaved_lags import QUICK, study


def runs(first: float, last: float, loss: float) -> Runs:
    """The lag is found with a share that changes from the first to the last of twelve positions."""
    final = {"models": np.linspace(first, last, 12), "Bayes": np.linspace(0.4, 0.95, 12)}
    return made_up({"loss": [1.2, loss]}, final | {"unigram": 1.2, "any lag": 1.1, "oracle": 0.8})


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, runs(0.4, 0.9, loss=0.85), runs(0.6, 0.5, loss=1.1))


def test_a_small_run_measures_every_claim() -> None:
    found, outcome = measured(study, tiny(QUICK), LAB)
    assert found["beats-mixture"] == "fails" and found["lag-found"] != "holds"
    assert outcome.results.final["models"].shape == outcome.results.final["Bayes"].shape == (2, 32)
