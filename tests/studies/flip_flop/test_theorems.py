"""Theorems: claims on made-up counts, the circuit's threshold, and a small run."""

from __future__ import annotations

from dataclasses import replace

from claim_cases import check
from flip_flop_cases import claims
from stand_in import LAB

from sandlab.lenses.flip_flop.tail_errors import ErrorRate
from sandlab.studies.flip_flop.theorems import CircuitJob, Settings, circuit_errors, study

SMALL = Settings(strings=2, heads=20, sums=20, random_length=32, random_strings=50)


def test_a_small_run_holds_and_every_claim_can_fail() -> None:
    outcome = study.run(SMALL, LAB, "full")
    assert {finding.claim for finding in outcome.findings} == claims(study, "full")
    assert set(outcome.figures) == {"limits"} and set(outcome.tables) == {"addition"}
    good = outcome.results
    bad = replace(
        good,
        proven=ErrorRate(1, 10),
        random=ErrorRate(1, 10),
        by_sharpness={1.0: 0.0, 2.0: 0.5},
        wrong_on_short_strings=1,
        wrong_memories=1,
        wrong_parses=1,
        smaller_monoids=1,
        strings={4: 3},
        floors={share: [floor + 0.02 for floor in floors] for share, floors in good.floors.items()},
        soft=[0.1] * 8,
        lstm_parameters=133_000,
        sharpness_gap=0.1,
        dilution_excess=0.1,
        failure_gap=1,
        window_gap=0.1,
        reads=[3000 + index for index in range(8)],
        wrong_sums=1,
    )
    check(study, good, bad)


def test_the_circuit_errs_below_the_threshold_and_not_above() -> None:
    rates = [circuit_errors(CircuitJob(64, 30, sharpness)).rate for sharpness in (0.25, 5.0, None)]
    assert rates[0] > 0.1 and rates[1:] == [0.0, 0.0]
