"""The study of the theorems: claims on made-up ratios, and the bounds at single distances."""

from __future__ import annotations

import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.lenses.nce.bounds import bound_ratios
from sandlab.studies.nce._shared import gaussian
from sandlab.studies.nce.theorems import (
    Bounds,
    Promise,
    PromiseJob,
    Results,
    Settings,
    measure_promise,
    study,
)

NAMES = [claim.id.partition(".")[2] for claim in study.claims if ".promise" not in claim.id]


def results(ratio: float, below_one: float = 0.5) -> Results:
    bounds = [
        Bounds(distance, dict.fromkeys(NAMES, ratio if distance >= 1 else below_one), 0.6, 3.0)
        for distance in (0.5, 2.0)
    ]
    promises = [Promise(kind, 2.0, ratio * 100, 100.0, 0.1) for kind in ("ence", "nce")]
    return Results(bounds, promises)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.5), results(2.0))


def test_statements_about_distant_data_ignore_small_distances() -> None:
    found = results(0.5, below_one=2.0)
    assert found.worst("neighbourhood") == 0.5 and found.worst("overlap") == 2.0


def test_bounds_hold_at_one_distance_and_misprints_do_not() -> None:
    ratios = bound_ratios(gaussian(4.0), 50)
    assert set(ratios) == set(NAMES)
    assert {name for name, value in ratios.items() if value > 1} == {"noise-curvature-printed"}
    assert bound_ratios(gaussian(0.5), 50)["condition-printed"] > 1


def test_normalised_descent_takes_fewer_updates_than_promised() -> None:
    found = measure_promise(PromiseJob("ence", 2.0))
    assert found.taken == 15 and found.promised == pytest.approx(256, abs=1)


def test_a_small_run_draws_and_judges() -> None:
    outcome = study.run(Settings(distances=(0.5, 2.0), promises=(1.0,), points=50), LAB)
    failing = {finding.claim for finding in outcome.findings if finding.verdict == "fails"}
    assert failing == {"nce/theorems.noise-curvature-printed", "nce/theorems.condition-printed"}
    assert set(outcome.figures) == {"theorems"} and set(outcome.tables) == {"bounds", "promises"}
