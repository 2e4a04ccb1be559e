"""Studies of the theory: claims on made-up results, and small runs of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.reasoning.features import FeatureTraining, RetrievalTraining, train_features, train_retrieval
from sandlab.learning.reasoning.reduced import Descent
from sandlab.lenses.reasoning.features import FeatureReport, RetrievalReport
from sandlab.studies.reasoning.theory import (
    algorithms,
    attention_stages,
    ffn_features,
    ideal_horizon,
    recursive_reduced,
    retrieval_w4,
    theorems,
)
from sandlab.studies.study import Study

SEEDS = 6


def measured(study: Study[Any], settings: Any) -> None:
    outcome = study.run(settings, LAB, "quick")
    due = {claim.id for claim in study.due("quick")}
    assert {finding.claim for finding in outcome.findings} | set(outcome.unmeasured) == due and outcome.figures


def test_attention_stages() -> None:
    rows = np.array([(step, *values[:3]) for step, values in attention_stages.KNOWN.items()]).T
    good = Descent(rows[0].astype(int), rows[1], rows[2], rows[3])
    flat = Descent(np.array([0, 20]), np.array([4.0, 4.0]), np.array([0.0, 0.0]), np.array([0.0, 0.0]))
    rising = Descent(rows[0].astype(int), rows[1], 5 * rows[2], rows[3])
    check(
        attention_stages.study,
        attention_stages.Results(good, flat),
        attention_stages.Results(flat, good),
        attention_stages.Results(rising, good),
    )
    measured(attention_stages.study, attention_stages.Settings(iterations=60, second_only=10))


def test_recursive_stages() -> None:
    def chain(action: str, *rows: tuple[float, ...], growth: float = 1.0) -> recursive_reduced.ChainResult:
        start, end = np.array(recursive_reduced.KNOWN[: len(rows)]).T
        return recursive_reduced.ChainResult(action, 0, growth * start, end, np.array(rows))

    doubling, broken, nothing = (1.0, 1.0, 0.9, 0.1), (1.0, 0.3, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)
    far = (1.0, 1.0, 1.0, 1.0)
    good = recursive_reduced.Results([chain("S3", doubling, doubling)] * SEEDS, [chain("S4", doubling, broken)] * SEEDS)
    bad = recursive_reduced.Results([chain("S3", broken, broken, growth=1.5)] * SEEDS, [chain("S4", far, far)] * SEEDS)
    worse = recursive_reduced.Results([chain("S3", far, far)] * SEEDS, [chain("S4", nothing)] * SEEDS)
    check(recursive_reduced.study, good, bad, worse)
    job = recursive_reduced.ChainJob("S3", 2, 1e-2, 0.5, 40)
    measured(recursive_reduced.study, recursive_reduced.Settings((job, replace(job, seed=1)), (job, job)))


def test_horizons() -> None:
    table = np.array(list(ideal_horizon.KNOWN.values()), dtype=float)
    sweep = (2.0, 3.0, 4.0)
    right = ideal_horizon.Horizons(table, np.array([ideal_horizon.length_horizon("C6", beta) for beta in sweep]) * 0.9)
    wrong = ideal_horizon.Horizons(1 - table, np.array([5.0, 5.0, 5.1]))
    good, bad = (
        ideal_horizon.Results([right] * SEEDS, sweep, [0.0]),
        ideal_horizon.Results([wrong] * SEEDS, sweep, [0.1]),
    )
    check(ideal_horizon.study, good, bad)
    measured(ideal_horizon.study, ideal_horizon.Settings(chains=6, sweep=(2.0, 2.5), seeds=2, longest=40))


def test_features() -> None:
    plan = FeatureTraining("C3", neurons=6, phases=((5.0, 300),), snapshots=5)
    descent = train_features(plan)

    def run(learnt: float, single: float, ratio: float, cancelled: float, drift: float, tau: float) -> ffn_features.Run:
        report = FeatureReport(learnt, single, ratio, np.array([ratio]), cancelled, -1.0)
        return ffn_features.Run(plan, replace(descent, drift=drift, accuracy=1.0), report, tau)

    good = ffn_features.Results(
        [run(1.0, 0.9, 1.0, 0.02, 1e-13, 0.9)] * SEEDS, [run(1.0, 0.9, 1.0, 0.02, 1e-13, 0.9)] * SEEDS
    )
    bad = ffn_features.Results([run(0.5, 0.1, 3.0, 0.5, 1.0, 0.0)] * SEEDS, [run(0.5, 0.1, 3.0, 0.5, 1.0, 0.0)] * SEEDS)
    check(ffn_features.study, good, bad)
    tiny = FeatureTraining("C3", neurons=6, phases=((5.0, 200),), snapshots=5)
    measured(ffn_features.study, ffn_features.Settings(tiny, replace(tiny, action="S3"), 2))


def test_retrieval() -> None:
    plan = RetrievalTraining(variables=4, actions=2, values=2, neurons=2, iterations=20)
    descent = train_retrieval(plan)

    def run(accuracy: float, ratio: float, rest: float) -> retrieval_w4.Run:
        others = {"consumed": rest, "answered": rest, "action": rest, "value": rest}
        report = RetrievalReport(np.zeros((3, 4)), np.zeros((3, 4)), np.ones(4), ratio, others)
        return retrieval_w4.Run(replace(descent, accuracy=accuracy), report)

    good, bad = (retrieval_w4.Results([each] * SEEDS) for each in (run(1.0, 9.0, 0.1), run(0.6, 1.0, 2.0)))
    check(retrieval_w4.study, good, bad)
    measured(retrieval_w4.study, retrieval_w4.Settings(plan, 2))


def test_algorithms() -> None:
    def end(accuracy: float, left: tuple[float, ...]) -> algorithms.EndResult:
        return algorithms.EndResult(np.array(left), np.full((len(left) - 1, 2), accuracy), 1.0, np.zeros(2))

    def whole(ratio: float) -> algorithms.LiteralResult:
        return algorithms.LiteralResult(np.array([2.0, 1.0]), np.array([2.0, 1.0]), ratio)

    good = algorithms.Results([end(1.0, (0.5, 0.2))] * SEEDS, [end(1.0, (0.5, 0.2, 0.1))] * SEEDS, [whole(9.0)] * SEEDS)
    bad = algorithms.Results([end(0.2, (0.5, 0.6))] * SEEDS, [end(0.2, (0.5, 0.6, 0.7))] * SEEDS, [whole(0.5)] * SEEDS)
    check(algorithms.study, good, bad)
    plan = FeatureTraining("C3", neurons=4, phases=((5.0, 100),))
    settings = algorithms.Settings(plan, replace(plan, action="S3"), 20, 1, 2, algorithms.Literal((1.0, 3), (1.0, 3)))
    measured(algorithms.study, settings)


def test_theorems() -> None:
    row = {"c1": 0.1, "level": 0.01, "reached": 1.0, "left over": 0.2, "gap": 0.01, "left over 4": 0.3}
    hit = {"L": 2.0, "U": 0.5, "W": 1.0, "crowded": 0.0, "y0 = y1": 0.2, "loaded": 0.0}
    good = theorems.Results(1e-15, 1e-15, 1e-13, 1e-15, [-1.0], [(1.0, 2.0, 3.0)], [row], [hit], ["S3"])
    worse = {**row, "left over": 0.9, "gap": 0.5, "left over 4": 0.9}
    bad = theorems.Results(1.0, 1.0, 1.0, 1.0, [1.0], [(1.0, 5.0, 3.0)], [worse], [hit], ["S3"])
    check(theorems.study, good, bad)
    errors = theorems.gradient_errors()
    assert max(errors) < 1e-12 and theorems.oracle_error() < 1e-10
