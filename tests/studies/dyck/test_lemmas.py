"""The study of the lemmas."""

from claim_cases import check, verdicts
from stand_in import LAB

from sandlab.studies.dyck.lemmas import LEMMAS, Results, Settings, study


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, Results(dict.fromkeys(LEMMAS, 0.0)), Results(dict.fromkeys(LEMMAS, 1.1)))


def test_the_lemmas_hold_and_the_misprints_do_not() -> None:
    outcome = study.run(Settings(draws=40), LAB, "quick")
    found = verdicts(study, outcome.results)
    assert {name for name, verdict in found.items() if verdict == "fails"} == {"composition-printed", "select-printed"}
    assert set(found) == set(LEMMAS) and set(outcome.figures) == {"bounds"}
