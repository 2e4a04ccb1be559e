"""The study of the landscape: its table against closed forms, and that each claim can fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from claim_cases import verdicts
from stand_in import LAB

from sandlab.studies.nce.landscape import Results, Settings, measure, study

PRINTED = {"minimum-printed", "smallest-printed"}


def results(power: float, minimum: float, kappa: tuple[float, float], fisher: float) -> Results:
    """A table whose curvatures follow R^power and whose condition numbers grow with these powers."""
    distance = np.array([1.0, 2.0, 4.0, 8.0, 10.0, 12.0, 16.0])
    nce, ence = 1.1788e5 * (distance / 16) ** kappa[0], 4354 * (distance / 16) ** kappa[1]
    smallest = np.log(24.0 * distance**power) - distance**2 / 8
    logs = np.log(np.full(7, minimum))
    return Results(distance, logs, np.log(distance) - distance**2 / 8, smallest, logs, nce, ence, fisher * ence)


def test_every_claim_can_hold_and_can_fail() -> None:
    true = verdicts(study, results(-5.0, 1.919388e-15, (6.0, 4.0), 2.0))
    assert all((verdict == "fails") == (name in PRINTED) for name, verdict in true.items())
    printed = verdicts(study, results(-1.0, math.exp(-32.0), (3.0, 5.0), 0.5))
    unchanged = {"curvature-exponent", "kappa", "kappa-exponential"}
    assert {name for name, verdict in printed.items() if verdict == "holds"} == PRINTED | unchanged
    wrong = Results(*(np.linspace(1, 2, 7) * each for each in (16, 1, 1, 1, 1, 3, 2, 1)))
    found = verdicts(study, wrong)
    assert all(found[name] != "holds" for name in unchanged)


def test_a_row_is_what_the_closed_forms_say() -> None:
    _, minimum, _, _, overlap, _, kappa_ence, _ = measure(16.0)
    assert overlap == pytest.approx(-32) and kappa_ence == pytest.approx(4354, abs=0.1)
    assert math.exp(minimum) == pytest.approx(1.919388e-15, rel=1e-5)


def test_the_table_holds_and_its_misprints_fail() -> None:
    outcome = study.run(Settings(), LAB)
    found = {finding.claim.partition(".")[2]: finding.verdict for finding in outcome.findings}
    assert all((verdict == "fails") == (name in PRINTED) for name, verdict in found.items())
    assert [row["R"] for row in outcome.tables["landscape"]][-1] == 16.0 and set(outcome.figures) == {"landscape"}


def test_other_distances_leave_claims_about_sixteen_unmeasured() -> None:
    outcome = study.run(Settings((1.0, 2.0, 3.0)), LAB)
    assert {"nce/landscape.kappa", "nce/landscape.kappa-growth"} <= set(outcome.unmeasured)
