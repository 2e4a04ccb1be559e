"""Labels of states: claims on made-up accuracies, and what a part of the tasks leaves out."""

from __future__ import annotations

from automata_cases import runs, stored, tiny
from claim_cases import check
from stand_in import LAB

from sandlab.studies.automata.indirect import LABELS, QUICK, Results, Score, Settings, study


def results(transformer: float, lstm: float) -> Results:
    score = Score(runs(token=[transformer, transformer - 0.1]), runs(token=[lstm, lstm]), letters=8, majority=0.75)
    return Results(dict.fromkeys(LABELS, score))


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, stored(study, results(1.0, 1.0)), results(0.75, 0.9))


def test_claims_whose_tasks_were_not_chosen_are_left_out() -> None:
    outcome = study.run(tiny(Settings(QUICK.tasks[:1])), LAB)
    absent = {claim.split(".")[1] for claim in outcome.unmeasured}
    assert absent == {"by-position", "by-letters", "counter", "counter-solved", "car"}
    assert {finding.claim.split(".")[1] for finding in outcome.findings} == {"walls", "lstm"}


def test_a_small_run_measures_every_claim_and_draws() -> None:
    outcome = study.run(tiny(QUICK, seeds=1), LAB)
    assert len(outcome.findings) == 7 and set(outcome.figures) == {"labels"}
    assert [row["letters"] for row in outcome.tables["labels"]] == [24, 20, 20, 8, 8]
