"""The study of what a violation of balance costs."""

from dataclasses import replace

import numpy as np
from claim_cases import check
from dyck_cases import SEEDS, measures_everything, small
from stand_in import LAB

from sandlab.studies.dyck.violation_bound import DECAYS, NOISES, Comparison, Results, study


def results(error: float, spare: float, slope: float) -> Results:
    noise = 1 + 0.01 * np.arange(SEEDS)
    trained = {(decay, length): length**slope * noise**length for decay in DECAYS for length in (8, 16, 32)}
    return Results([Comparison(noise, 1000, 0.1, error, spare) for noise in NOISES], trained)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.2, 5.0, -2.0), results(0.05, -1.0, 0.5))


def test_the_price_of_a_violation_is_at_least_what_the_theorem_says() -> None:
    outcome = study.run(replace(small(study.config("quick")), draws=2), LAB, "quick")
    measures_everything(study, outcome, "quick")
    verdicts = {finding.claim.partition(".")[2]: finding.verdict for finding in outcome.findings}
    assert verdicts["bounds-error"] == verdicts["bounds-loss"] == "holds"
    assert len(outcome.tables["trained"]) == 6 and set(outcome.figures) == {"bound"}
