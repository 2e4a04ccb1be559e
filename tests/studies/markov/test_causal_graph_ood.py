"""The study of other priors: claims on made-up errors, and a small run."""

from __future__ import annotations

from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.studies.markov.graphs.causal_graph_ood import CONCENTRATIONS, QUICK, Results, study


def results(*ratios: float) -> Results:
    """Errors relative to those of the counting estimator, 0.2, at the shortest and the longest length."""
    errors = [[0.2 * ratio] * len(CONCENTRATIONS) for ratio in ratios]
    counting = [0.2] * len(CONCENTRATIONS)
    runs = [made_up(final={"model errors": error, "counting errors": counting}) for error in errors]
    return Results(dict(zip((8, 16), runs)))


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(1.5, 1.1), results(1.0, 2.0))


def test_a_small_run_measures_every_claim() -> None:
    _, outcome = measured(study, tiny(QUICK), LAB)
    assert list(outcome.results.chains) == [8, 16]
    assert outcome.results.chains[8].final["model errors"].shape == (2, len(CONCENTRATIONS))
