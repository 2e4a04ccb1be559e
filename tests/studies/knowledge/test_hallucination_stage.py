"""The claims of knowledge/hallucination-stage on made-up runs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.knowledge.hallucination_stage import QUICK, Results, study


def results(total: list[float], relation: list[float], subject: list[float]) -> Results:
    noise = 1e-4 * np.arange(8)[:, None]
    curves = {"total loss": total, "relation loss": relation, "subject loss": subject}
    metrics = {name: np.array(values) + noise for name, values in curves.items()}
    return Results(Runs(tuple(range(8)), 100 * np.arange(1, 6), metrics["total loss"], metrics), 4, 2)


def test_every_claim_can_hold_and_can_fail() -> None:
    d, two = math.log(4), math.log(2)
    staged = results([d + two, d, d, 0.3, 0.0], [two, 0.01, 0.0, 0.0, 0.0], [d, d, d, 0.3, 0.0])
    stuck = results([d + two, d + two, d + 0.5, 1.2, 0.9], [two] * 5, [d, d, 0.6, 0.2, 0.1])
    other_way = results([d + two, d, 1.0, 0.6, 0.4], [two, two, two, 0.01, 0.0], [d, 0.1, 0.05, 0.0, 0.0])
    check(study, staged, stuck, other_way)


def test_a_short_run_measures_and_draws() -> None:
    training = replace(QUICK.experiment.training, steps=8, evals=4, eval_examples=32, batch_size=8)
    outcome = study.run(replace(QUICK, experiment=replace(QUICK.experiment, training=training, seeds=2)), LAB)
    assert len(outcome.findings) + len(outcome.unmeasured) == len(study.claims)
    assert set(outcome.figures) == {"losses"}
