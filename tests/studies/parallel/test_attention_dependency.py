"""The claims of parallel/attention-dependency on made-up statistics, and a tiny run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from parallel_cases import tiny
from stand_in import LAB

from sandlab.studies.parallel.attention_dependency import PAPER, QUICK, Results, study


def results(swap: bool) -> Results:
    noise = 1e-4 * np.arange(3)
    yes, no = ({name: values[place] + noise for name, values in PAPER.items()} for place in (0, 1))
    if not swap:
        return Results(yes, no)
    return Results({**no, "self/avg": np.full(3, 0.9) + noise}, yes)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(False), results(True))


def test_a_tiny_run_draws_its_figure() -> None:
    outcome = study.run(replace(QUICK, raw=tiny(QUICK.raw), sentences=40), LAB, "quick")
    assert len(outcome.findings) + len(outcome.unmeasured) == len(study.claims) and set(outcome.figures) == {
        "separation"
    }
