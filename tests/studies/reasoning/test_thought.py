"""Circuits and graphs with and without a chain of thought: claims on made-up runs, and a small run of each."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.reasoning.thought import circuits_with_thought, connectivity_depth


def runs(solved: float) -> Runs:
    values = solved + 1e-4 * np.arange(6)[:, None]
    return Runs(
        tuple(range(6)), np.arange(2), np.zeros((6, 2)), {"loss": np.tile([1.0, 0.5], (6, 1))}, {"solved": values}
    )


def test_claims_about_circuits() -> None:
    def results(thought: float, plain: float, exact: float) -> circuits_with_thought.Results:
        return circuits_with_thought.Results(
            (4, 12), [runs(1.0), runs(thought)], [runs(1.0), runs(plain)], runs(thought), runs(plain), [exact] * 4
        )

    check(circuits_with_thought.study, results(0.98, 0.6, 1.0), results(0.5, 0.6, 0.2))


def test_claims_about_connectivity() -> None:
    def results(first: float, last: float, walked: float, exact: float, shallow: float) -> connectivity_depth.Results:
        right = {8: exact, 10: exact, 12: exact}, {8: shallow, 10: shallow, 12: shallow}
        trained = [[runs(1.0)] * 3, [runs(first), runs(0.8), runs(last)]]
        return connectivity_depth.Results((4, 8), (1, 2, 3), trained, [runs(1.0), runs(walked)], *right)

    check(connectivity_depth.study, results(0.5, 0.97, 0.9, 1.0, 0.5), results(0.5, 0.5, 0.3, 0.6, 1.0))


def test_small_runs_measure_and_draw() -> None:
    small = {"batch_size": 4, "eval_examples": 16}
    cases = [
        (circuits_with_thought.study, circuits_with_thought.settings((2, 3), 3, (0, 1), 3, 2, **small)),
        (connectivity_depth.study, connectivity_depth.settings((4, 6), (1, 2), 3, (0, 1), (4,), **small)),
    ]
    for study, settings in cases:
        outcome = study.run(settings, LAB, "quick")
        due = {claim.id for claim in study.due("quick")}
        assert {finding.claim for finding in outcome.findings} | set(outcome.unmeasured) == due and outcome.figures


def test_one_squaring_less_misses_the_longest_path_and_one_more_finds_it() -> None:
    for vertices in range(8, 66, 2):
        edges, squarings = vertices // 2 - 1, connectivity_depth.too_few(vertices)
        assert 2**squarings < edges <= 2 ** (squarings + 1)
    assert connectivity_depth.squaring_accuracy(connectivity_depth.SquaringJob(10, 1)) < 0.9
    assert connectivity_depth.squaring_accuracy(connectivity_depth.SquaringJob(10, 2)) == 1.0
