"""Walks and prefix sums: claims on made-up counts, and what is counted."""

from __future__ import annotations

import numpy as np
from automata_cases import stored
from claim_cases import check, verdicts
from stand_in import LAB

from sandlab.studies.automata.gridworld_illustration import Counts, Results, Room, Settings, check_walks, study


def test_every_claim_can_hold_and_can_fail() -> None:
    good = Results(Counts(walks=10), {1: np.full(3, 1.5), 8: np.ones(3)})
    wrong = Results(Counts(10, 1, 1, 1, 1, 1, 1), {1: np.full(3, 0.5), 8: np.full(3, 0.5)})
    check(study, stored(study, good), wrong)


def test_walks_are_counted_right() -> None:
    found = check_walks(Room(3, 1, longest=4, idle=2))
    assert found.walks == (1 + 2 + 4 + 8 + 16) + (1 + 3 + 9)
    assert found.wrong == found.wrong_short == found.span == 0 and found.span_printed == found.walks


def test_the_study_holds_and_its_misprints_fail() -> None:
    outcome = study.run(Settings(largest=3, longest=4, idle=3), LAB)
    found = verdicts(study, outcome.results)
    assert {name for name, verdict in found.items() if verdict == "fails"} == {"span-printed", "unmatched-printed"}
    assert set(outcome.figures) == {"walks"} and [row["S"] for row in outcome.tables["unmatched heads"]] == [1, 3, 8]
