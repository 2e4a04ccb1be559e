"""The claims of parallel/hitting-times on made-up walks, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.parallel.hitting_times import QUICK, Results, study

BLOCKS = QUICK.blocks


def results(steps: list[float], parallel: float, grows: float, off: float) -> Results:
    growth = np.linspace(1, grows, 5)[:, None]
    gibbs = np.array(steps) * np.where(np.arange(10) == 3, growth, 1.0)
    expected = np.concatenate([gibbs, np.full((5, 1), parallel)], 1)
    return Results(QUICK.couplings, BLOCKS, np.repeat(expected[..., None], 10, -1), expected + off, np.ones((5, 11)),
                   np.zeros((2, 10), dtype=int), np.ones((1, 10), dtype=bool))  # fmt: skip


def test_every_claim_can_hold_and_can_fail() -> None:
    good = results([1000, 999, 900, 21, 42, 14, 6, 3, 5 / 3, 1], 1000, 10, 0)
    bad = results([2, 3, 4, 8, 9, 10, 20, 30, 40, 50], 5, 0.1, 50)
    check(study, good, bad)


def test_a_small_run_measures_every_claim() -> None:
    outcome = study.run(replace(QUICK, couplings=(4.0, 8.0), seeds=3), LAB, "quick")
    assert len(outcome.findings) == len(study.claims) and set(outcome.figures) == {"steps", "spins"}
    assert outcome.results.expected[1, BLOCKS.index(4)] > 200
