"""The study of updates until convergence: claims on made-up counts, known counts, and a small run."""

from __future__ import annotations

import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.studies.nce.steps_to_converge import PLANS, Count, Plan, Results, Settings, count_updates, study


def results(growth: float, damped: float, normalised: int, ence: int, bound: float) -> Results:
    """Slow methods whose updates grow by a factor per distance; the fast ones grow like R³ to a count at R = 8."""
    fast = {"newton": 10, "normalised": normalised, "normalised-ence": ence}
    slow = {"descent": growth, "heavy-ball": growth, "newton-damped": damped}
    return Results([
        Count(
            Plan(name, distance, 60_000, 801),
            round(fast[name] * (distance / 8) ** 3) if name in fast else round(41_763 * slow[name] ** (distance - 5)),
            0.1, 0.1, bound,
        )
        for name in PLANS
        for distance in range(2, 9 if name in fast else 6)
    ])  # fmt: skip


def test_every_claim_can_hold_and_can_fail() -> None:
    good = results(growth=8.0, damped=4.0, normalised=1000, ence=500, bound=1.0)
    slow = results(growth=1.01, damped=1.5, normalised=6000, ence=7000, bound=1e9)
    never = Results([Count(each.plan, -1, 0.1, 1.0, 1.0) for each in slow.counts if each.plan.name != "descent"])
    wrong = Results([Count(each.plan, each.updates + 100, 0.1, 1.0, 1.0) for each in good.counts])
    check(study, good, slow, never, wrong)


@pytest.mark.parametrize(
    ("name", "distance", "updates"),
    [("descent", 2, 56), ("descent", 3, 452), ("newton", 8, 15), ("normalised", 4, 88), ("normalised-ence", 4, 45)],
)
def test_counts_are_the_known_ones(name: str, distance: int, updates: int) -> None:
    assert count_updates(Plan(name, distance, 5000, 801)).updates == updates


def test_a_limit_that_is_too_small_is_reported() -> None:
    count = count_updates(Plan("descent", 4, 50, 801))
    assert count.updates == -1 and 0.4 < count.closest < 9


def test_a_small_run_leaves_out_what_it_does_not_reach() -> None:
    outcome = study.run(Settings(descent=3, heavy_ball=3, newton_damped=3, fast=3, limit=1000), LAB)
    assert "nce/steps-to-converge.descent-at-five" in outcome.unmeasured
    assert set(outcome.figures) == {"steps"} and set(outcome.tables) == {"steps", "not measured"}


@pytest.mark.slow
def test_every_claim_holds_in_the_quick_preset() -> None:
    outcome = study.run(Settings(), LAB)
    assert {finding.verdict for finding in outcome.findings} == {"holds"} and not outcome.unmeasured
