"""The generative mode: claims on made-up runs, and a tiny run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from flip_flop_cases import claims, runs, tiny
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.flip_flop.generative import QUICK, Results, learnt_at, study


def made(learnt: int, dense: float, excess: float) -> Runs:
    """Runs whose error in distribution vanishes at evaluation `learnt`."""
    errors = {"in": [0.5] * learnt + [0.0] * (6 - learnt), "sparse": [0.1] * 6, "dense": [dense] * 6}
    return runs(metrics=errors, **{"in": 0.0, "sparse": 0.0, "dense": dense, "excess": excess})


def test_every_claim_can_hold_and_can_fail() -> None:
    good = Results(made(5, 0.1, 0.01), made(2, 0.1, 0.0), 0.6)
    perfect = replace(made(2, 0.0, 0.1), final=made(2, 0.0, 0.1).final | {"in": np.full(8, 0.005)})
    check(study, good, Results(made(2, 0.1, 0.5), made(5, 0.1, 0.0), 0.6), Results(perfect, made(5, 0.1, 0.0), 0.6))


def test_learning_time_is_the_first_step_with_a_small_error() -> None:
    curves = np.array([[1, 0.5, 0.001, 0.2], [1, 1, 1, 1]])
    made_up = Runs((0, 1), np.array([0, 10, 20, 30]), np.zeros((2, 1)), {"in": curves})
    assert learnt_at(made_up).tolist() == [20, 30]


def test_a_small_run_measures_every_claim() -> None:
    outcome = study.run(tiny(QUICK), LAB)
    assert {finding.claim for finding in outcome.findings} == claims(study, "quick")
    assert (outcome.results.generative.final["excess"] > 0.1).all()
