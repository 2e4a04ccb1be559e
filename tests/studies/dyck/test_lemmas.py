"""The study of the lemmas."""

import numpy as np
from claim_cases import check, verdicts
from stand_in import LAB

from sandlab.studies.dyck.lemmas import LEMMAS, Results, Settings, study


def test_every_claim_can_hold_and_can_fail() -> None:
    bad = Results(dict.fromkeys(LEMMAS, 1.1), np.array([0.03, 0.031, 0.029]))
    check(study, Results(dict.fromkeys(LEMMAS, 0.0), np.array([0.001, -0.001, 0.0])), bad)


def test_the_lemmas_hold_and_the_misprints_do_not() -> None:
    outcome = study.run(Settings(draws=40), LAB, "quick")
    found = verdicts(study, outcome.results)
    assert {name for name, verdict in found.items() if verdict == "fails"} == {"composition-printed", "select-printed"}
    assert set(found) == {*LEMMAS, "random-maps"} and len(set(outcome.results.maps)) == 8
    assert set(outcome.figures) == {"bounds"}
