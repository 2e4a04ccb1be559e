"""Checks that a claim can hold and can fail: `check(study, good, bad)` judges made-up results, nothing is computed.

`good` are results on which every claim holds. `bad` are results on which every claim fails, or several of them, each
for some claims: a claim must fail on at least one.
"""

from __future__ import annotations

from typing import Any

from sandlab.studies.claims import judge
from sandlab.studies.study import Study


def verdicts(study: Study[Any], results: Any) -> dict[str, str]:
    """Claim (without the study's name) → verdict on these results."""
    return {claim.id.rpartition(".")[2]: judge(claim, claim.measure(results)).verdict for claim in study.claims}


def check(study: Study[Any], good: Any, *bad: Any) -> None:
    """Every claim holds on `good`, and fails on at least one of `bad`."""
    found = verdicts(study, good)
    assert {name: verdict for name, verdict in found.items() if verdict != "holds"} == {}
    failing = {name for results in bad for name, verdict in verdicts(study, results).items() if verdict == "fails"}
    assert set(found) - failing == set(), "these claims never failed"
