"""The claims of expressivity/protocols on made-up runs."""

from __future__ import annotations

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Runs, Training
from sandlab.studies.expressivity.protocols import Results, settings, study


def runs(needed: int, best: float = 0.99) -> Runs:
    bits = np.tile([0.0, 2.0, 64.0, 128.0, 256.0], (4, 1))
    accuracy = np.where(bits >= needed, best, 0.5)
    return Runs(tuple(range(4)), np.array([0]), accuracy, {}, {"protocol": accuracy, "bits": bits})


def bounds(extra: int) -> list[dict[str, object]]:
    names = {"index": 8, "disjointness": 8, "majority": 4, "parity": 1}
    return [{"function": name, "n": 8, "one way": bits + extra} for name, bits in names.items()]


def test_every_claim_can_hold_and_can_fail() -> None:
    good = Results(bounds(0), [1e-13, 2e-13], [4, 8], [runs(64), runs(256)], [runs(64), runs(64)])
    bad = Results(bounds(7), [0.1, 0.11, 0.12], [4, 8], [runs(256), runs(2)], [runs(64), runs(128)])
    check(study, good, bad)


def test_a_network_that_did_not_learn_is_not_measured() -> None:
    unlearnt = Results(bounds(0), [0.0], [4, 8], [runs(64, 0.6)] * 2, [runs(64)] * 2)
    outcome = study.judge(unlearnt)
    assert "expressivity/protocols.index-needs-more-bits" in outcome.unmeasured


def test_a_small_run_draws() -> None:
    training = Training(steps=3, batch_size=8, evals=1, eval_examples=32)
    outcome = study.run(settings((3, 4), training, width=4, seeds=2), LAB)
    assert len(outcome.findings) + len(outcome.unmeasured) == len(study.claims)
    assert set(outcome.figures) == {"bits"} and outcome.results.index[0].final["bits"].shape == (2, 8)
