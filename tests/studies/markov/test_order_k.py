"""The study of chains of order k: claims on made-up losses, and a small run."""

from __future__ import annotations

import pytest
from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.studies.claims import NotMeasured
from sandlab.studies.markov.order_k import QUICK, Results, order_one, study, two_layers
from sandlab.worlds.ngrams.estimators import ngram_name


def results(gap: float, orders: tuple[int, ...] = (1, 2, 4)) -> Results:
    """Runs that end `gap` above an optimum of 0.5; the best predictor of one order less is 0.1 above it."""
    return Results({
        (order, layers): made_up({"loss": [0.7, 0.5 + gap]}, {"oracle": 0.5, ngram_name(order - 1): 0.6})
        for order in orders
        for layers in (2, 3)
    })  # fmt: skip


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.01), results(0.1))


def test_claims_about_orders_that_were_not_trained_are_not_measured() -> None:
    with pytest.raises(NotMeasured, match="order 2 with 2 layers"):
        two_layers(results(0.01, orders=(1,)))
    assert order_one(results(0.01, orders=(1,))) == pytest.approx([0.01] * 4)


def test_a_small_run_measures_every_claim_of_the_quick_preset() -> None:
    found, outcome = measured(study, tiny(QUICK), LAB)
    assert found["three-layers"] != "holds"
    assert list(outcome.results.runs) == [(1, 2), (2, 2), (2, 3)]


def test_chains_of_order_one_get_half_of_the_steps() -> None:
    assert [each.training.steps for each in QUICK.runs] == [500, 1000, 1000]
    assert QUICK.runs[0].training.warmup == 25
