"""Rare labels: claims on made-up accuracies, and a run in miniature."""

from __future__ import annotations

from automata_cases import runs, stored, tiny
from claim_cases import check
from stand_in import LAB

from sandlab.studies.automata.incomplete import QUICK, Results, Scores, study


def results(transformer: tuple[float, float], lstm: float, easy: float) -> Results:
    """Accuracies with all labels and with a tenth of them."""
    shares = (1.0, 0.1)
    recurrent = {share: runs(token=[lstm, lstm]) for share in shares}
    hard = {share: runs(token=[level, level - 0.01]) for share, level in zip(shares, transformer)}
    simple = {share: runs(token=[level, level]) for share, level in zip(shares, (1.0, easy))}
    return Results([Scores("S5", hard, recurrent), Scores("C2", simple, recurrent)])


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, stored(study, results((0.9, 0.5), 1.0, 0.99)), results((0.5, 0.9), 0.6, 0.5))


def test_a_small_run_hides_labels_in_training_and_counts_all_in_the_test() -> None:
    outcome = study.run(tiny(QUICK), LAB)
    assert len(outcome.findings) == 3 and set(outcome.figures) == {"labels"}
    assert [row["labels shown"] for row in outcome.tables["labels"]] == [1.0, 0.1, 0.02]
    assert set(outcome.results.hard.lstm) == {1.0, 0.1, 0.02}
