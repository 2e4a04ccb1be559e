"""The study of the walk on trees: claims on made-up numbers, and a small run in which the exact ones hold."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.verifier.walk_laws import Example, Results, study

EXAMPLE = Example([np.ones(1), np.ones(2)], np.array([0.5, 0.25, 0.25]), np.array([0.5, 0.5]), np.array([0.6, 0.4]))


def results(error: float, lead: float) -> Results:
    """All identities off by `error`; the first leaf is closer to the target by `lead`."""
    zeros, ones = np.full(6, error), np.full(6, 1 + error)
    solved = {"stationary": zeros, "leaves": zeros, "first leaf, exact values": zeros, "padded leaf": zeros}
    solved |= {"depth": np.full(6, 4), "noise": ones - error, "noisy gap": np.full(6, 0.03 if error == 0 else 0.001)}
    solved |= {"leaf mass": ones, "gap": ones, "steps": ones}
    solved |= {"leaf mass over bound": np.full(6, 1.2 - error), "p-value": np.full(6, 0.5 * (error == 0))}
    solved |= {"first leaf": np.linspace(0.1, 0.2, 6), "no backtracking": np.linspace(0.1, 0.2, 6) + lead}
    return Results(solved, EXAMPLE)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.0, 0.05), results(0.3, -0.05))


def test_the_exact_claims_hold_on_a_small_tree() -> None:
    outcome = study.run(study.config("quick", seeds=2, shapes=((2, 3), (3, 2)), runs=200), LAB)
    exact = [finding for finding in outcome.findings if finding.kind == "exact"]
    assert len(outcome.findings) == 11 and all(finding.verdict == "holds" for finding in exact)
    (rows,) = outcome.tables.values()
    assert [(row["tokens"], row["depth"]) for row in rows] == [(2, 3), (3, 2)]
    example = outcome.results.example
    assert np.isclose(example.moves.sum(), 1) and np.isclose(example.stationary[-1], 1 / 8, atol=0.1)
    assert set(outcome.figures) == {"walk"}
