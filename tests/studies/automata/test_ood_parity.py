"""Parity elsewhere: claims on made-up accuracies, and what other tests leave out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from automata_cases import runs, stored, tiny
from claim_cases import check
from stand_in import LAB

from sandlab.studies.automata.ood_parity import PAD, PLAIN, QUICK, RECURRENT, Results, study
from sandlab.studies.claims import NotMeasured

UNSOLVED = {"more-ones", "more-ones-sharp", "counts", "fewer-ones", "fewer-ones-sharp", "few-worse-than-many"}
"""Claims about models that solve parity in distribution."""


def results(usual: float, shifted: float, other: float) -> Results:
    """The transformer at probabilities 0.05, ½, 0.95 and at 6 and 12 ones; the other models everywhere."""
    few = 0.5 * shifted if usual == 1.0 else 1.0
    plain = [[few, usual, shifted, usual, shifted], [few, usual - 0.001, shifted, usual, shifted]]
    flat = [[other] * 5, [other] * 5]
    named = {PLAIN: runs(variants=plain), RECURRENT: runs(variants=flat), PAD: runs(variants=flat)}
    return Results(named, (0.05, 0.5, 0.95), (6, 12), 12)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, stored(study, results(1.0, 0.8, 1.0)), results(0.97, 0.98, 0.9))


def test_failures_are_counted_on_seeds_that_solve_parity() -> None:
    some = Results({PLAIN: runs(variants=[[1.0], [0.6], [0.96]])}, (0.5,), (), 12)
    assert some.solved.tolist() == [0, 2]
    none = Results({PLAIN: runs(variants=[[0.5], [0.7]])}, (0.5,), (), 12)
    with pytest.raises(NotMeasured, match="no seed solves parity"):
        _ = none.solved


@pytest.mark.parametrize(
    ("ones", "counts", "left_out"),
    [
        ((0.05, 0.5, 0.95), (6, 12), UNSOLVED),
        ((0.5,), (6, 12), UNSOLVED),
        ((0.05, 0.95), (), {"in-distribution", *UNSOLVED}),
    ],
)
def test_claims_whose_tests_were_not_chosen_are_left_out(ones, counts, left_out) -> None:
    outcome = study.run(replace(tiny(QUICK), ones=ones, counts=counts), LAB)
    assert {claim.split(".")[1] for claim in outcome.unmeasured} == left_out
    assert len(outcome.findings) == 9 - len(left_out) and set(outcome.figures) == {"frequencies and counts"}
    assert len(outcome.tables["accuracy"]) == 3 * (len(ones) + len(counts))
