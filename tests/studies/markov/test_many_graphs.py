"""The study of many graphs: claims on made-up runs, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.studies.markov.graphs.many_graphs import QUICK, Results, study
from sandlab.worlds.markov.causal_graphs import InContextTree, random_parents


def results(match: float, edges: bool) -> Results:
    runs = made_up(final={"match": match, "edges": np.array([edges] * 4), "pattern": np.eye(5)})
    return Results([[(1, 0), (2, 1)]] * 3, [runs] * 3, [runs] * 3)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.9, True), results(0.3, False))


def test_a_small_run_measures_every_claim() -> None:
    small = replace(QUICK, trees=QUICK.trees[:2], first_layer=QUICK.first_layer[:1])
    found, outcome = measured(study, tiny(small), LAB)
    assert found["attention"] != "holds"
    assert len(outcome.results.trees) == 2 and outcome.results.edges[0] == InContextTree(3, random_parents(10, 1)).edges


def test_quick_has_seven_trees_and_full_twenty() -> None:
    full = study.presets["full"]
    assert (len(QUICK.trees), len(QUICK.first_layer)) == (7, 12)
    assert (len(full.trees), len(full.first_layer)) == (20, 40) and full.trees[0].seeds == 4
