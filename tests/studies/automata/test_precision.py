"""Precision: claims on made-up measurements, and the jobs that measure."""

from __future__ import annotations

import numpy as np
import pytest
from automata_cases import stored
from claim_cases import check
from stand_in import LAB

from sandlab.studies.automata.precision import (
    Construction,
    CountAccuracy,
    Results,
    Settings,
    Truncated,
    measure_bits,
    measure_counts,
    study,
)


def results(bits: list[float], noise: tuple[float, float], predicted: float, last: float) -> Results:
    counts = {level: [CountAccuracy(0.9, predicted, last if level == 0.5 else 0.5)] * 2 for level in (0.1, 0.5, 0.9)}
    settings = Settings(lengths=(8, 16, 32, 64))
    return Results(settings, {"scan": np.array([bits] * 2)}, {"scan": np.repeat([noise], 6, 0).T}, counts)


def test_every_claim_can_hold_and_can_fail() -> None:
    good = results([4, 6, 8, 10], (1.0, 0.4), 0.9, 0.99)
    check(study, stored(study, good), results([4, 30, 5, 40], (0.9, 1.0), 0.5, 0.6))


def test_the_truncated_counter_follows_the_binomial_distribution() -> None:
    found = measure_counts(Truncated(0.3, 3, 9, length=20, words=2000))
    assert found.measured == pytest.approx(found.predicted, abs=0.02)


def test_bits_are_found() -> None:
    assert 2 <= measure_bits(Construction("C3", "modular-counter", 8, 5)) <= 10


@pytest.mark.slow
def test_a_small_run_measures_every_claim_and_draws() -> None:
    small = Settings(
        (8, 64), 3, noise=(1e-8, 1e-1), noise_length=8, noise_draws=2, known=(3, 9), count_length=12, seeds=2
    )
    outcome = study.run(small, LAB)
    assert len(outcome.findings) == 6 and set(outcome.figures) == {"precision"}
    assert len(outcome.tables["bits"]) == 8 and len(outcome.tables["slopes"]) == 4
