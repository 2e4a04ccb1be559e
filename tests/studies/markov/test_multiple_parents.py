"""The study of several parents: claims on made-up runs, and a small run."""

from __future__ import annotations

import numpy as np
import pytest
from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.studies.claims import NotMeasured
from sandlab.studies.markov.graphs.multiple_parents import GRAPHS, QUICK, Graph, Results, disentangled, study
from sandlab.worlds.markov.causal_graphs import lag_parents


def results(score: float, loss: float, names: tuple[str, ...] = (*GRAPHS, "disentangled")) -> Results:
    """Six tokens, two parents, three heads."""
    final = {"pattern": np.full((3, 5, 5), 0.2), "heads": np.array([2, 0]), "oracle": 0.5, "uniform": 1.1}
    runs = made_up({"score": [0.1, score], "loss": [1.1, loss]}, final)
    return Results(dict.fromkeys(names, Graph(lag_parents(6, (1, 2)), runs)))


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.9, loss=0.55), results(0.4, loss=1.0))


def test_the_sources_model_is_not_measured_by_the_quick_preset() -> None:
    with pytest.raises(NotMeasured, match="source's model"):
        disentangled(results(0.9, 0.55, names=tuple(GRAPHS)))
    assert len(QUICK.graphs) == 3 and len(study.presets["full"].graphs) == 4


def test_the_named_graphs() -> None:
    assert GRAPHS["skip"][5] == (4, 2)
    assert GRAPHS["three lags"][4] == (3, 2, 1)


def test_a_small_run_measures_every_claim() -> None:
    found, outcome = measured(study, tiny(QUICK), LAB)
    assert found["skip"] == "fails"
    assert outcome.results.graphs["three lags"].runs.final["heads"].shape == (2, 3)
    assert outcome.results.graphs["skip"].runs.final["pattern"].shape == (2, 3, 47, 47)
