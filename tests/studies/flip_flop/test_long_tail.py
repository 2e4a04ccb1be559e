"""The long tail: claims on made-up runs, and a tiny run with a glitch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from claim_cases import check
from flip_flop_cases import SEEDS, claims, reads, tiny
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.flip_flop.long_tail import QUICK, Results, study, transformer_tail, worse_than_lstm


def made(inside: float, sparse: np.ndarray | float, curve: list[float], *, bits: float = 0.0) -> Runs:
    """Runs with these errors, the dense one along the way; `bits` is added when only bits are compared."""
    found = reads(inside, 0.0, curve[-1])
    metrics = found.metrics | {"dense": np.tile(curve, (SEEDS, 1))}
    final: dict[str, Any] = found.final | {"sparse": np.broadcast_to(sparse, SEEDS), "failures": [{}] * SEEDS}
    final |= {f"{name} bits": metrics[name][:, -1] + bits for name in ("in", "sparse", "dense")}
    return replace(found, final=final, metrics=metrics)


def test_every_claim_can_hold_and_can_fail() -> None:
    good = made(0.0, np.array([2e-2, 2e-1] * (SEEDS // 2)), [0.0, 0.1, 0.1, 0.3])
    perfect, wrong = made(0.0, 0.0, [0.0] * 4), made(0.1, 0.0, [0.2] * 4, bits=0.1)
    check(study, Results(good, hundred(perfect), 64), Results(wrong, wrong, 64), Results(perfect, wrong, 64))


def test_models_that_have_not_learnt_their_distribution_have_no_glitches() -> None:
    untrained = Results(made(0.5, 0.5, [0.5] * 4), made(0.5, 0.5, [0.5] * 4), 64)
    assert not transformer_tail(untrained).any() and not worse_than_lstm(untrained).any()


def hundred(runs: Runs) -> Runs:
    """The first seed, a hundred times."""
    metrics, final = (
        {name: np.repeat(value[:1], 100, 0) for name, value in each.items()} for each in (runs.metrics, runs.final)
    )
    return replace(runs, metrics=metrics, final=final)


def test_a_small_run_measures_every_claim_and_draws_a_glitch() -> None:
    outcome = study.run(tiny(QUICK), LAB, "full")
    assert {finding.claim for finding in outcome.findings} == claims(study, "full")
    assert set(outcome.figures) == {"curves", "distances", "glitch"}
    assert set(outcome.tables) == {"errors", "shortest failing inputs"}
    assert len(outcome.tables["errors"]) == 4
    for failure in outcome.results.failures.values():
        found = failure.glitch
        assert len(found.tokens) == found.position + 1 and found.answer != found.truth
        assert all(pattern.shape[-1] == len(found.tokens) for pattern in failure.maps.values())
    errors, counts = outcome.results.transformer.final["dense distances"][0]
    assert (errors <= counts).all() and counts.sum() >= 50
