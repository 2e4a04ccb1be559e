"""The study of constructions: claims on made-up results, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Experiment, Runs
from sandlab.studies.ngrams.constructions import TEMPERATURES, Results, matches, study


def runs(arrival: int, start: float = 1.0, end: float = 0.8, seeds: int = 6) -> Runs:
    """Losses that fall from start to end at one step, up to a little noise."""
    steps = np.arange(0, 400, 10)
    noise = np.random.default_rng(0).normal(scale=1e-5, size=(seeds, len(steps)))
    loss = np.where(steps < arrival, start, end) + noise
    return Runs(tuple(range(seeds)), steps, loss, {"loss": loss})


def results(error: float, arrivals: tuple[int, int], end: float = 0.8) -> Results:
    attention = {order: np.full(12, error) for order in (1, 2)}
    for order, row in attention.items():
        row[matches(order)] = 1.0
    errors = error * np.ones((4, 6, 1)) * np.exp(-TEMPERATURES)
    pair = [runs(each, end=end) for each in arrivals]
    noise = [pair[0], pair[0]] if error < 1 else pair
    return Results(64, errors, attention, {"jacobians": error}, [0.9, 0.9], pair, noise, pair)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(1e-12, (100, 300)), results(1e15, (300, 100)), results(1e15, (300, 100), end=1.2))


def test_positions_match_that_follow_the_same_tokens() -> None:
    # 2 0 1 1 2 0 2 1 0 1 0 2 ends in 0 2: after a 2 come 0 (position 1), 0 (5) and 1 (7); after 0 2 comes 1 (7).
    # A history that would start before the sequence repeats its first token, so that position 0 matches 2.
    assert np.flatnonzero(matches(1)).tolist() == [0, 1, 5, 7] and np.flatnonzero(matches(2)).tolist() == [7]


def test_a_small_run_measures_every_claim_and_the_constructions_are_exact() -> None:
    def small(pair: tuple[Experiment, Experiment]) -> tuple[Experiment, Experiment]:
        training = replace(pair[0].training, steps=20, evals=20, eval_examples=32)
        return replace(pair[0], training=training, seeds=2), replace(pair[1], training=training, seeds=2)

    quick = study.presets["quick"]
    settings = replace(
        quick,
        by_length=small(quick.by_length),
        by_noise=small(quick.by_noise),
        by_temperature=small(quick.by_temperature),
    )
    outcome = study.run(settings, LAB)
    verdicts = {finding.claim.partition(".")[2]: finding.verdict for finding in outcome.findings}
    assert {verdicts[name] for name in ("exact", "rate", "matches", "jacobians")} == {"holds"}
    assert set(verdicts) | {claim.partition(".")[2] for claim in outcome.unmeasured} >= {"escape"}
    assert set(outcome.figures) == {"constructions"} and set(outcome.tables) >= {"matches"}
