"""The claims of knowledge/memory-capacity on made-up capacities."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.knowledge.memory_capacity import Results, settings, study

SIZES = [64, 256, 1024]


def results(power: float, outer: float) -> Results:
    spread = np.array([1.0, 1.01, 1.02, 0.99])
    grown = np.array([[size**power] for size in SIZES]) * spread
    capacity = {"linear": grown, "perceptron": grown, "outer product": outer * grown}
    return Results(dict.fromkeys(capacity, SIZES), capacity)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.85, 0.2), results(0.5, 1.5))


def test_a_size_may_have_fewer_seeds() -> None:
    whole, some = results(0.85, 0.2), results(0.85, 0.2)
    some.capacity["linear"][-1, 2:] = some.capacity["outer product"][-1, 2:] = np.nan
    assert len(some.points("linear")) == len(whole.points("linear")) - 2
    verdicts = [[finding.verdict for finding in study.judge(each).findings] for each in (whole, some)]
    assert verdicts[0] == verdicts[1]


def test_a_small_search_measures_and_draws() -> None:
    sizes = settings((4, 6, 8), ((4, 4), (4, 8)), steps=(20, 20), lr=(0.05, 0.05), seeds=3, short=6, few=8)
    assert [len(case.seeds) for case in sizes.linear] == [3, 3, 2]
    assert [case.training.precision for case in sizes.linear] == ["float32", "bfloat16", "bfloat16"]
    outcome = study.run(sizes, LAB)
    assert {finding.claim for finding in outcome.findings} == {claim.id for claim in study.claims}
    assert set(outcome.figures) == {"capacity"}
