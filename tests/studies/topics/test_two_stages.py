"""The study of two stages: claims on made-up norms, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Training
from sandlab.studies.topics.two_stages import ADAM, QUICK, SGD, Results, study

STEPS = np.arange(1001)


def norms(attention: int, value: int) -> dict[str, np.ndarray]:
    """Norms of three seeds that grow tenfold from these steps on, over two hundred steps."""

    def curves(start: int) -> np.ndarray:
        starts = start + np.arange(3)[:, None]
        return 1 + 9 * np.clip((STEPS - starts) / 200, 0, 1)

    return {"key": curves(attention), "query": curves(attention), "value": curves(value)}


def results(slow: tuple[int, int], fast: tuple[int, int]) -> Results:
    return Results(STEPS, dict.fromkeys(SGD, norms(*slow)) | dict.fromkeys(ADAM, norms(*fast)))


def test_every_claim_can_hold_and_can_fail() -> None:
    good = results((300, 0), (0, 0))
    for name in SGD:
        good.norms[name] = good.norms[name] | {"value": np.where(STEPS > 5, 10.0, 1.0) + 0.01 * np.arange(3)[:, None]}
    check(study, good, results((0, 100), (300, 0)))


def test_a_small_run_measures_every_claim() -> None:
    def small(each: Training) -> Training:
        return replace(each, steps=5, batch_size=4, evals=5, eval_examples=2)

    tiny = replace(QUICK, runs=tuple(replace(each, training=small(each.training), seeds=2) for each in QUICK.runs))
    outcome = study.run(tiny, LAB, "quick")
    assert {finding.claim for finding in outcome.findings} | set(outcome.unmeasured) == {c.id for c in study.claims}
    assert outcome.results.norms["SGD, 20"]["key"].shape == (2, 6) and set(outcome.figures) == {"norms"}


def test_claims_say_nothing_when_nothing_grows() -> None:
    still = {part: np.ones((3, 1001)) for part in ("key", "query", "value")}
    outcome = study.judge(Results(STEPS, dict.fromkeys((*SGD, *ADAM), still)), "quick")
    assert {finding.verdict for finding in outcome.findings if finding.claim.endswith(("sgd", "once"))} == {"fails"}
    assert set(outcome.unmeasured) == {"topics/two-stages.together-with-adam"}
