"""The study of the annulus: claims on made-up points, and a coarse run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import verdicts
from stand_in import LAB

from sandlab.lenses.nce.annulus import SteepestPoint
from sandlab.lenses.nce.pictures import NCELandscape
from sandlab.studies.nce.annulus import Map, Results, Settings, draw_map, near_map, study

DISTANCES = (8.0, 20.0, 40.0)


def results(exponents: tuple[float, float, float], inside: float) -> Results:
    points = [
        SteepestPoint(0.8 * distance, distance**2 / 2, -kappa * distance**2 / 8, kappa, inside)
        for distance, kappa in zip(DISTANCES, exponents)
    ]
    empty = Map(20.0, 1, (20.0, 200.0), NCELandscape(*(np.zeros(1) for _ in range(5))), {})
    return Results(DISTANCES, points, empty, empty)


def test_every_claim_can_hold_and_can_fail() -> None:
    assert verdicts(study, results((0.73, 0.585, 0.565), 1.0)) == {
        "inside": "holds", "flat": "holds", "exponent": "holds", "exponent-printed": "fails",
    }  # fmt: skip
    assert verdicts(study, results((0.2, 0.8, 0.8), 0.9)) == {
        "inside": "fails", "flat": "fails", "exponent": "fails", "exponent-printed": "holds",
    }  # fmt: skip


def test_maps_come_with_the_path_of_every_method() -> None:
    found = draw_map(replace(near_map(Settings()), grid=5, updates=3))
    assert found.landscape.log_loss.shape == (5, 5)
    assert {path.shape for path in found.paths.values()} == {(4, 2)} and len(found.paths) == 5


@pytest.mark.slow
def test_a_coarse_run_draws_and_judges() -> None:
    outcome = study.run(Settings(distances=DISTANCES, grid=9, updates=10), LAB)
    found = {finding.claim.partition(".")[2]: finding.verdict for finding in outcome.findings}
    assert found == {"inside": "holds", "flat": "holds", "exponent": "holds", "exponent-printed": "fails"}
    assert set(outcome.figures) == {"annulus", "landscape"} and set(outcome.tables) == {"annulus"}
