"""The study of constructions: claims on made-up errors, and every circuit at small size."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from markov_cases import measured
from stand_in import LAB

from sandlab.studies.markov.constructions import BOUNDS, Results, Settings, study

CIRCUITS = ("tree", "several parents", "induction head", "order k, 3 layers", "order k, 2 layers")


def results(error: float, ratio: float, edges: float, entropy: float) -> Results:
    return Results(
        errors={states: dict.fromkeys(CIRCUITS, error) for states in (2, 3)},
        sharpness=dict.fromkeys((1, 2), ratio * BOUNDS),
        pull_back=[error] * 3,
        two_states=[error] * 6,
        edges=[edges] * 8,
        entropies=[(entropy, entropy - 0.001)] * 5,
    )


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(1e-13, 0.5, 1.0, 0.0), results(1e-3, 2.0, 0.9, 0.1))


def test_every_circuit_of_the_chapter_is_exact() -> None:
    settings = Settings(seeds=2, states=(2, 3), orders=(1, 2), examples=20, kernels=2000)
    found, outcome = measured(study, settings, LAB)
    sampled = {"row-entropy", "visited-rows"}
    assert {verdict for claim, verdict in found.items() if claim not in sampled} == {"holds"}
    assert list(outcome.results.errors) == [2, 3] and np.isfinite(outcome.results.sharpness[2]).all()
