"""The grid of seeds: claims on made-up errors, shared weights and data, the analysis of variance, and a tiny run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from claim_cases import check
from flip_flop_cases import claims, tiny
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.flip_flop.seed_grid import QUICK, InitialWeights, Results, study, variance
from sandlab.studies.nulls import untrained


def results(errors: list[list[float]]) -> Results:
    """Larger tail errors (weights, data)."""
    finals = [{"in": np.zeros(len(row)), "sparse": np.zeros(len(row)), "dense": np.array(row)} for row in errors]
    seeds, steps, loss = tuple(range(len(errors[0]))), np.arange(2), np.zeros((2, 2))
    return Results([Runs(seeds, steps, loss, {}, final) for final in finals])


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2], [0.2, 0.3, 0.1]]), results([[0.1] * 3] * 3))


def test_the_sums_of_squares_add_up() -> None:
    errors = [[0.1, 0.2], [0.5, 0.7]]
    rows = variance(results(errors))
    assert sum(row["sum of squares"] for row in rows) == pytest.approx(4 * np.var(errors))
    assert rows[1]["share"] > 0.8  # the weights matter most in this table


def test_columns_share_their_weights_and_rows_their_data() -> None:
    small = replace(untrained(tiny(QUICK)), probes=(), final=())
    own, fixed, other = (
        LAB.train(replace(small, prepare=prepare), weights=True)
        for prepare in (None, InitialWeights(0), InitialWeights(1))
    )
    weights = [runs.weights["embedding.weight"] for runs in (own, fixed, other) if runs.weights is not None]
    assert torch.equal(weights[1][0], weights[1][1]) and torch.equal(weights[2][0], weights[2][1])
    assert torch.equal(weights[1][0], weights[0][0]) and torch.equal(weights[2][0], weights[0][1])
    assert np.array_equal(fixed.loss[0], own.loss[0]) and np.array_equal(other.loss[1], own.loss[1])


def test_a_small_run_measures_every_claim() -> None:
    outcome = study.run(tiny(QUICK), LAB)
    assert {finding.claim for finding in outcome.findings} == claims(study, "quick")
    assert set(outcome.figures) == {"grid"} and set(outcome.tables) == {"variance"}
