"""Sizes: claims on made-up errors, and a tiny run."""

from __future__ import annotations

from dataclasses import replace

from claim_cases import check
from flip_flop_cases import claims, reads, tiny
from stand_in import LAB

from sandlab.studies.flip_flop.sizes import QUICK, Results, study


def test_every_claim_can_hold_and_can_fail() -> None:
    small, large = (1, 32, 2), (2, 64, 4)
    good = Results({small: reads(0.2, 0.3, 0.3), (2, 32, 2): reads(0.1, 0.1, 0.3), large: reads(0.0, 0.0, 0.1)})
    check(
        study,
        good,
        Results({small: reads(0.0, 0.0, 0.0)}),
        Results({small: reads(0.2, 0.3, 0.3), large: reads(0.1, 0.0, 0.0)}),
    )


def test_every_size_gets_its_curves_and_a_row() -> None:
    outcome = study.run(replace(tiny(QUICK), sizes=((1, 8, 1), (2, 16, 2))), LAB)
    assert [row["layers"] for row in outcome.tables["sizes"]] == [1, 2]
    assert outcome.tables["sizes"][0]["parameters"] < outcome.tables["sizes"][1]["parameters"]
    assert {finding.claim for finding in outcome.findings} == claims(study, "quick")
