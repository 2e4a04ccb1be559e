"""The claims of parallel/decode-speed on made-up latencies, and a short run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.parallel.decode_speed import QUICK, Results, study

LENGTHS = (8, 16, 32, 64)


def results(refine: float, write: float, passes: float) -> Results:
    length = np.array(LENGTHS, dtype=float)[:, None]
    mean = np.concatenate([np.full((4, 3), refine), write * length, write * length], 1)
    seconds = mean[..., None] * (1 + 1e-3 * np.arange(15))
    counts = np.concatenate([np.full((4, 3), passes), length, length * passes / 4], 1)
    counts[:, 3] = length[:, 0] * (1 if passes <= 4 else 2)
    return Results(LENGTHS, seconds, counts)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.004, 0.001, 4.0), results(1.0, 0.001, 9.0))


def test_a_short_run_counts_passes() -> None:
    outcome = study.run(replace(QUICK, layers=1, width=16, lengths=(8, 32, 64), repeats=2), LAB, "quick")
    assert len(outcome.findings) == len(study.claims)
    assert outcome.results.passes[:, 3].tolist() == [8, 32, 64] and outcome.results.passes[:, 0].tolist() == [1, 1, 1]
