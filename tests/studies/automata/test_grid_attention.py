"""Attention on walks: claims on made-up scores, and a run in miniature."""

from __future__ import annotations

from typing import Any

import numpy as np
from automata_cases import runs, stored, tiny
from claim_cases import check
from stand_in import LAB

from sandlab.studies.automata.grid_attention import (
    QUICK,
    CircuitAttention,
    CircuitWalks,
    Results,
    circuit_attention,
    study,
)
from sandlab.worlds.automata.counters import Grid


def results(token: float, uniform: float, gain: float, score: float, leakage: float) -> Results:
    """Two layers of two heads; `gain` is what training adds to the weight on walls."""

    def heads(before: float, after: float, *walls: int) -> np.ndarray:
        return np.stack([np.full((3, 2, 2, *walls), before), np.full((3, 2, 2, *walls), after)], 1)

    metrics: dict[str, Any] = {"score": heads(0.9, score, 2), "base": heads(0.3, 0.3, 2)}
    metrics |= {"weight": heads(0.3, 0.3 + gain, 2), "leakage": heads(0.5, leakage, 2), "uniform": heads(0.5, uniform)}
    walk = runs(metrics=metrics, token=[token] * 3)
    circuit = CircuitAttention(np.full((3, 2), score), np.zeros((3, 4, 4)), np.zeros(4))
    return Results(walk, [circuit, circuit], (0, 3))


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, stored(study, results(1.0, 0.9, 0.2, 0.8, 0.1)), results(0.9, 0.5, 0.0, 0.3, 0.4))


def test_heads_of_untrained_and_trained_models_are_measured() -> None:
    outcome = study.run(tiny(QUICK), LAB)
    walk = outcome.results.walk
    assert walk.metrics["score"].shape == (2, 5, 2, 2, 2) and walk.metrics["uniform"].shape == (2, 5, 2, 2)
    maps = walk.final["maps"].astype(float)
    assert maps.shape == (2, 2, 2, 32, 32) and np.allclose(maps.sum(-1), 1, atol=2e-3)
    assert len(outcome.findings) == 5 and set(outcome.figures) == {"heads"} and len(outcome.tables["heads"]) == 8


def test_the_circuit_attends_to_both_walls() -> None:
    found = circuit_attention(CircuitWalks(Grid(size=4, length=16)))
    assert found.score.max(0).min() > 0.5 and found.maps.shape[1:] == (16, 16) == 2 * found.states.shape
