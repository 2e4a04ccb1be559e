"""The study of the first gradient: claims on made-up gradients, and a small run."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from markov_cases import measured
from stand_in import LAB

from sandlab.studies.markov.graphs.chi2_gradient import Graph, Results, Settings, study
from sandlab.worlds.markov.causal_graphs import chain_parents

PARENTS = chain_parents(20)


def results(points: bool, off: float) -> Results:
    """Tables whose largest entries are the parents' (one position back), or those of the first position."""
    true, false = np.eye(20, k=-1) + 0.1 * np.tri(20), 0.1 * np.tri(20)
    false[:, 0] = 1.0
    table = {True: true, False: false}
    return Results([Graph(PARENTS, [table[points]] * 6, off * true, true)] * 2)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(True, 0.0), results(False, 0.5))


def test_a_small_run_points_at_the_parents_and_needs_the_second_layer() -> None:
    found, outcome = measured(study, Settings(seeds=1, length=6, sequences=2**14), LAB)
    assert found["needs-second-layer"] == "holds"
    assert found["points-at-parent"] != "fails"
    assert outcome.results.graphs[0].descent[0].shape == (6, 6)
