"""The study of causal graphs: claims on made-up runs, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.markov.graphs._shared import FAMILIES
from sandlab.studies.markov.graphs.causal_graph import QUICK, Results, settings, study


def runs(match: float, edges: bool, loss: float) -> Runs:
    """Five positions and two states; four seeds."""
    final = {"match": match, "edges": np.array([edges] * 3), "pattern": np.eye(4), "graph": 0.3, "uniform": 0.7}
    width = 2 + 5
    weights = {
        "layers.1.attention.weight": torch.zeros(4, 1, 2 * width, 2 * width),
        "unembed.weight": torch.zeros(4, 2, 4 * width),
    }
    return replace(made_up({"loss": [0.7, loss], "match": [0.2, match]}, final), weights=weights)


def results(match: float, edges: bool, loss: float, adam: float, gain: float) -> Results:
    sharpened = made_up(final={"match": 0.8, "loss": 0.5, "sharp match": 0.99, "sharp loss": 0.5 + gain})
    graphs = [parents(5) for parents in FAMILIES.values()]
    return Results(
        graphs, [runs(match, edges, loss)] * 3, runs(adam, edges, loss), [runs(match, edges, loss)] * 3, sharpened
    )


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.95, True, 0.31, 0.1, 0.005), results(0.3, False, 0.6, 0.9, 0.2))


def test_a_small_run_recovers_nothing_and_measures_every_claim_of_the_quick_preset() -> None:
    small = tiny(replace(settings(3, 5, 4, 4), first_layer=QUICK.first_layer))
    found, outcome = measured(study, small, LAB)
    assert found["chain"] == found["layer-by-layer"] == "fails"
    assert found["recovered"] != "holds"
    assert set(outcome.figures) == {"graphs", "training"}
    assert len(outcome.tables["sharpened"]) == 2
    assert (outcome.results.sharpened.final["sharp match"] > 0.8).all()


def test_both_presets_train_the_first_layer_at_the_sources_size() -> None:
    for preset in study.presets.values():
        assert [each.world.length for each in preset.first_layer] == [20, 20, 20]
        assert {each.world.states for each in (*preset.first_layer, preset.sharpened)} == {10}
