"""Checks that a claim can hold and can fail: `check(study, good, bad)` judges made-up results, nothing is computed.

`good` are results on which every claim holds. `bad` are results on which every claim fails, or several of them, each
for some claims: a claim must fail on at least one. Claims about the best of many runs are judged as if the made-up
seeds had been repeated until there are as many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sandlab.studies.claims import Best, Claim, NotMeasured, judge
from sandlab.studies.study import Study


def verdicts(study: Study[Any], results: Any) -> dict[str, str]:
    """Claim (without the study's name) → verdict on these results, or "not measured"."""
    found = {}
    for claim in study.claims:
        try:
            found[claim.id.rpartition(".")[2]] = judge(claim, enough(claim, claim.measure(results))).verdict
        except NotMeasured:
            found[claim.id.rpartition(".")[2]] = "not measured"
    return found


def enough(claim: Claim, measured: Any) -> Any:
    """The values of at least as many seeds as the claim's best was taken of; other claims are left alone."""
    if not isinstance(claim.relation, Best):
        return measured
    return np.tile(np.atleast_1d(measured), claim.relation.of)


def check(study: Study[Any], good: Any, *bad: Any) -> None:
    """Every claim holds on `good`, and fails (or finds nothing to measure) on at least one of `bad`."""
    found = verdicts(study, good)
    assert {name: verdict for name, verdict in found.items() if verdict != "holds"} == {}
    judged = [verdicts(study, results) for results in bad]
    failing = {name for each in judged for name, verdict in each.items() if verdict in ("fails", "not measured")}
    assert set(found) - failing == set(), "these claims never failed"
