"""The study of uniform attention."""

from dataclasses import replace

import numpy as np
from claim_cases import check
from dyck_cases import measures_everything, runs, small
from stand_in import LAB

from sandlab.studies.dyck import _shared as shared
from sandlab.studies.dyck.uniform import Results, study


def test_every_claim_can_hold_and_can_fail() -> None:
    good, bad = (runs(accuracy=accuracy, long_accuracy=accuracy) for accuracy in (0.995, 0.7))
    check(study, Results(good, [1e-12] * 4), Results(bad, [0.1] * 4))


def test_frozen_attention_stays_uniform_and_every_claim_is_measured() -> None:
    settings = small(study.config("quick"))
    outcome = study.run(replace(settings, final=(*settings.final, shared.probe_maps)), LAB, "quick")
    measures_everything(study, outcome, "quick")
    rows = np.tril(np.ones((17, 17)))
    maps = outcome.results.runs.final["maps"]
    assert np.allclose(maps, rows / rows.sum(-1, keepdims=True), atol=1e-6)
