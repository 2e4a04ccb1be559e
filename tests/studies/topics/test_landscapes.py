"""The study of landscapes: claims on made-up minima, and a coarse grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.studies.topics.landscapes import KINDS, Landscape, Results, Settings, study
from sandlab.worlds.topics.masking import MaskedStatistics


def results(block: list[float], same: list[float], other: float) -> Results:
    grid = np.ones(3)
    empty = Landscape(MaskedStatistics(100, 300, 20), "block", grid, np.ones((3, 3)), 1.0, 1.0)
    found = []
    for present, gamma, beta in zip((20, 40), block, same):
        s = MaskedStatistics(100, 300, present)
        found.append(replace(empty, statistics=s, alpha=gamma, beta=gamma))
        found.append(replace(empty, statistics=s, value="diagonal", alpha=other * beta, beta=beta))
    return Results(found)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(
        study,
        results([53.0, 66.0], [14918.0, 19103.0], 1e-6),
        results([2.0, 1.0], [20.0, 10.0], 0.1),
        results([1e6, 1e6], [2e5, 1e5], 0.1),
    )


def test_a_coarse_grid_measures_every_claim_and_draws_both_value_matrices() -> None:
    outcome = study.run(Settings(points=111), LAB, "quick")
    assert {finding.verdict for finding in outcome.findings} == {"holds"}
    assert len(outcome.findings) == len(study.claims)
    assert set(outcome.figures) == {f"{kind} values" for kind in KINDS}
    least = {each.statistics.present: each.least for each in outcome.results.of("block")}
    assert least[20] == pytest.approx(0.19970346, abs=2e-6)
