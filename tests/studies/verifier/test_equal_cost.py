"""Decoders at equal cost: claims on made-up curves, and one tiny run of one task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.verifier._cost_runs import ALGORITHMS, Curves, Point
from sandlab.studies.verifier.equal_cost import Results, study


def made_up(good: bool) -> Results:
    def points(seed: int) -> list[Point]:
        found = []
        for budget in (1, 2, 4):
            for name in ALGORITHMS:
                better = name in ("walk", "backtracking") if good else name not in ("walk", "backtracking")
                accuracy = (0.8 if better else 0.5) + 0.01 * seed
                cost = budget * (5.0 if better else 20.0)
                found.append(Point(name, budget, accuracy, cost, 3.0, 1.0 if better else 2.0))
        return found

    curves = [
        Curves(points(seed), 0.03 if good else 0.3, 0.9 if good else 0.5, np.array([0.2]), np.array([0.2]), 0.7)
        for seed in range(3)
    ]
    return Results({"a": curves, "b": curves})


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, made_up(True), made_up(False))


def test_a_tiny_run_of_the_json_task() -> None:
    quick = study.config("quick")
    records = replace(quick.records, seeds=2, training=replace(quick.records.training, steps=30))
    tiny = replace(
        quick, records=records, tasks=("JSON records",), prompts=6, rollouts=60, repeated=1, samples=6, budgets=(1, 2)
    )
    outcome = study.run(tiny, LAB)
    assert len(outcome.findings) == 6 and set(outcome.figures) == {"accuracy-against-cost", "calibration"}
    (rows,) = outcome.tables.values()
    assert [row["algorithm"] for row in rows] == list(ALGORITHMS)
