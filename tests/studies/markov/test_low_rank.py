"""The study of low rank: claims on made-up spectra, and a small run."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.markov.low_rank import FIRST, MATRICES, QUICK, study

FULL_RANK, RANK_ONE = np.ones(8), np.array([8.0, *[0.1] * 7])


def runs(start: np.ndarray, end: np.ndarray) -> Runs:
    return made_up(dict.fromkeys(MATRICES, np.stack([start, end])))


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, runs(FULL_RANK, RANK_ONE), runs(RANK_ONE, FULL_RANK))


def test_a_small_run_tells_initial_weights_from_rank_one() -> None:
    found, outcome = measured(study, tiny(QUICK, seeds=4), LAB)
    assert found == {"feed-forward": "fails", "second-map": "fails", "from-full-rank": "fails"}
    assert outcome.results.metrics[FIRST].shape == (4, 3, 8)
    assert [row["matrix"] for row in outcome.tables["ranks"]] == list(MATRICES.values())
