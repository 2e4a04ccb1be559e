"""The claims of parallel/mask-more on made-up errors, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.parallel.mask_more import FULL, Results, study

SIZES = (100, 300, 1000, 3000, 10000)


def results(factor: tuple[float, ...], power: float, gap: float) -> Results:
    n = np.array(SIZES, dtype=float)
    theory = np.array([30.0, 16.0, 12.0, 11.0])
    noise = np.random.default_rng(0).normal(0, 0.02, (2, 5, 4, 20))
    mean = theory * np.array(factor) / 10 / (n[:, None] ** power * 10_000 ** (1 - power))
    return Results(
        (0.05, 0.3), SIZES, mean[None, :, :, None] * np.exp(noise), np.stack([theory] * 2), np.full((2, 3), gap)
    )


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results((1, 1, 1, 1), 1.0, 0.1), results((0.2, 3, 5, 9), 0.5, -1.0))


def test_a_small_run_measures_every_claim() -> None:
    outcome = study.run(replace(FULL, samples=(300, 1000, 10000), seeds=4), LAB, "quick")
    assert len(outcome.findings) == len(study.claims) and set(outcome.figures) == {"error-against-samples"}
    assert outcome.results.trace[0, 0] > 28
