"""Decoders at equal cost: claims on made-up curves, and one tiny run of one task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.studies.verifier._cost_runs import ALGORITHMS, Curves, Point, _relative_distance
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
    records = replace(quick.records, seeds=1, training=replace(quick.records.training, steps=30))
    tiny = replace(
        quick, records=records, tasks=("JSON records",), prompts=4, rollouts=60, repeated=1, samples=6, budgets=(1, 2),
        tries=2, walk_steps=1,
    )  # fmt: skip
    outcome = study.run(tiny, LAB)
    # A model that is hardly trained may get nothing right: there is then no target to be near to.
    assert len(outcome.findings) + len(outcome.unmeasured) == 6 and len(outcome.findings) >= 5
    assert set(outcome.figures) == {"accuracy-against-cost", "calibration"}
    rows = outcome.tables["at the largest budget"]
    assert [row["algorithm"] for row in rows] == list(ALGORITHMS)


def test_the_distance_does_not_depend_on_which_prompts_were_hard_nor_on_how_many_strings_came_out() -> None:
    coin = np.random.default_rng(0)
    target, again, easy_only = ({(prompt,): coin.integers(4, size=400).tolist() for prompt in (1, 2)} for _ in range(3))
    few = {(1,): easy_only[(1,)], (2,): easy_only[(2,)][:20]}
    assert 0.4 < _relative_distance(target, again, few) < 2.5
    assert _relative_distance(target, again, {(1,): [0] * 400, (2,): [0] * 400}) > 8
    nothing = _relative_distance(target, again, {(1,): [], (2,): []})
    assert nothing > 8 and np.isnan(_relative_distance({(1,): []}, {(1,): []}, {(1,): [3]}))


def test_lines_are_compared_at_the_largest_cost_that_both_have_paid() -> None:
    def points(name: str, costs: list[float], accuracies: list[float]) -> list[Point]:
        return [Point(name, budget, good, cost, 0.0) for budget, (cost, good) in enumerate(zip(costs, accuracies))]

    dear = points("walk", [10.0, 100.0, 1000.0], [0.2, 0.4, 1.0])
    cheap = points("best of n", [1.0, 10.0, 100.0], [0.1, 0.3, 0.5])
    results = Results({"a": [Curves([*dear, *cheap], 0.0, 1.0, np.array([]), np.array([]), 0.5)]})
    assert results.gain("walk", "best of n") == pytest.approx([0.4 - 0.5])
