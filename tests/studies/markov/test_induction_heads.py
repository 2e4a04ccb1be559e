"""The study of induction heads: claims on made-up curves, the reading of the drop, and a small run."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.markov.induction_heads import QUICK, Results, study

LEVELS = {"oracle": 0.6, "uniform": 1.1, "unigram": 1.0, "bigram": 0.6}


def runs(losses: list[float], nearest: list[int], match: float) -> Runs:
    """Curves with the index of the nearest estimator, and the attention of one layer or two at the end."""
    distances = np.ones((len(losses), 3))
    distances[np.arange(len(losses)), nearest] = 0.1
    shown = {"maps": np.ones((2, 6, 6)), "example": np.ones((2, 6, 6)), "tokens": np.array([0, 1, 2, 1, 0, 1])}
    final = LEVELS | {"previous": match, "successor": match} | shown
    return made_up({"loss": losses, "distances": distances}, final, seeds=8)


def test_every_claim_can_hold_and_can_fail() -> None:
    flat = runs([1.1, 1.0, 0.99, 0.95], [0, 1, 1, 1], 0.1)
    good = Results(flat, runs([1.1, 1.0, 1.0, 0.61], [0, 1, 1, 2], 0.9))
    bad = Results(runs([1.1, 0.9, 0.7, 0.61], [0, 2, 2, 2], 0.9), runs([1.3, 1.2, 1.2, 1.2], [0, 0, 0, 0], 0.1))
    check(study, good, bad)


def test_the_drop_is_the_first_evaluation_below_the_middle_of_the_gap_or_the_last() -> None:
    assert Results(runs([1.0], [0], 0), runs([1.2, 1.0, 0.95, 0.7, 0.6], [0] * 5, 0)).drops == [3] * 8
    assert Results(runs([1.0], [0], 0), runs([1.2, 1.0, 0.95], [0] * 3, 0)).drops == [2] * 8


def test_a_small_run_measures_every_claim_and_draws_losses_and_attention() -> None:
    found, outcome = measured(study, tiny(QUICK), LAB)
    assert found["two-layers-optimal"] == "fails"
    assert set(outcome.figures) == {"losses", "attention"}
    assert outcome.results.two.final["maps"].shape == (2, 2, 48, 48)
