"""Lengths of the published grammars."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.distillation.grammar_lengths import PRINTED, Results, Settings, study


def results(shift: float) -> Results:
    exact = {name: [int(value + shift) for value in values] for name, values in PRINTED.items()}
    means = dict.fromkeys(PRINTED, 250.0)
    return Results(exact, means, {name: 250.0 + shift + 0.1 * np.arange(5) for name in PRINTED})


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(1.0), results(20.0))


def test_a_small_run_finds_the_published_percentiles_and_draws_the_diagrams() -> None:
    outcome = study.run(Settings(sentences=200, seeds=2), LAB, "quick")
    assert outcome.findings[0].verdict == "holds"
    rules = {f"rules of {name}" for name in PRINTED}
    assert set(outcome.figures) == {"laws", "derivation", "derivation of cfg3b", "decision tree", "BERT"} | rules
    words = {text.get_text() for text in outcome.figures["derivation"].axes[0].texts}
    assert {"the", "cat", "ran", "away"} <= words
