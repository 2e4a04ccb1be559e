"""The study of depth and width: claims on made-up accuracies, the task's mask, and a small run."""

from __future__ import annotations

from dataclasses import replace

import torch
from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.random import rng
from sandlab.studies.markov.induction_depth_width import QUICK, Answered, Results, settings, study


def results(two: float, shortest: float, longest: float, narrow: float) -> Results:
    """Accuracies of two layers, and of one layer: wide at the shortest and longest length, narrow everywhere."""
    accuracies = {(16, 1, 16): narrow, (16, 1, 64): shortest, (48, 1, 16): narrow, (48, 1, 64): longest}
    accuracies |= {(16, 2, 64): two, (48, 2, 64): two}
    runs = {case: made_up({"late accuracy": [0.1, value]}) for case, value in accuracies.items()}
    return Results(runs, lengths=[16, 48], widths=[16, 64])


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.99, 0.8, 0.3, narrow=0.4), results(0.5, 0.6, 0.9, narrow=0.9))


def test_positions_without_an_answer_do_not_count() -> None:
    batch = Answered(4, 1, 10).sample(20, rng=rng(0))
    assert torch.equal(batch.mask, batch.targets < 4)


def test_a_small_run_measures_every_claim() -> None:
    small = replace(QUICK, runs=settings((6, 8), (4, 8), steps=4, lr=1e-3, seeds=2).runs)
    found, outcome = measured(study, tiny(small), LAB)
    assert found["two-layers-flat"] == "fails"
    rows = outcome.tables["accuracy"]
    assert [(row["length"], row["layers"], row["width"]) for row in rows] == list(outcome.results.runs)
    assert all(row["parameters"] > 0 for row in rows)
