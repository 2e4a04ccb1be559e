"""Checks that a claim can hold and can fail: `check(study, good, bad)` judges made-up results, nothing is computed.

`good` are results on which every claim holds. `bad` are results on which every claim fails, or several of them, each
for some claims: a claim must fail on at least one.
"""

from __future__ import annotations

from typing import Any

from sandlab.studies.claims import NotMeasured, judge
from sandlab.studies.study import Study


def verdicts(study: Study[Any], results: Any) -> dict[str, str]:
    """Claim (without the study's name) → verdict on these results, or "not measured"."""
    found = {}
    for claim in study.claims:
        try:
            found[claim.id.rpartition(".")[2]] = judge(claim, claim.measure(results)).verdict
        except NotMeasured:
            found[claim.id.rpartition(".")[2]] = "not measured"
    return found


def check(study: Study[Any], good: Any, *bad: Any) -> None:
    """Every claim holds on `good`, and fails (or finds nothing to measure) on at least one of `bad`."""
    found = verdicts(study, good)
    assert {name: verdict for name, verdict in found.items() if verdict != "holds"} == {}
    judged = [verdicts(study, results) for results in bad]
    failing = {name for each in judged for name, verdict in each.items() if verdict in ("fails", "not measured")}
    assert set(found) - failing == set(), "these claims never failed"
