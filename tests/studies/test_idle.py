"""No claim that a source says holds may hold on its study's null: it would say nothing about the effect."""

from __future__ import annotations

from pathlib import Path

import pytest

import sandlab as sl
from sandlab.lab._report.published import null_findings
from sandlab.lab.run import run
from sandlab.registry import _study_modules
from sandlab.studies.claims import Finding

WITH_NULL = [name for name in sorted(_study_modules()) if "null" in sl.get("studies", name).presets]
CHEAP = ["knowledge/memory-capacity", "distillation/grammar-lengths"]
DEARER = [
    "distillation/two-stage", "flip-flop/drift", "hmm/restarts", "markov/causal-graph-ood", "nce/images",
    "parallel/hitting-times", "reasoning/ideal-horizon", "reasoning/length-generalisation", "topics/value-blocks",
]  # fmt: skip
"""Studies whose null takes some seconds, and up to half a minute."""


def idle(findings: list[Finding]) -> list[str]:
    return [finding.claim for finding in findings if finding.held and finding.verdict == "holds"]


@pytest.mark.parametrize("name", WITH_NULL)
def test_the_null_is_recorded_with_the_present_code_and_no_claim_holds_on_it(name: str) -> None:
    recorded = null_findings(sl.get("studies", name))
    assert recorded is not None, f"sandlab run {name} --null, then publish it"
    assert idle(recorded) == []


@pytest.mark.parametrize("name", CHEAP)
def test_no_claim_holds_on_a_null_that_is_run_now(name: str, tmp_path: Path) -> None:
    assert idle(list(run(name, "null", store=tmp_path, on="local").findings)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", DEARER)
def test_no_claim_holds_on_a_null_that_takes_longer(name: str, tmp_path: Path) -> None:
    assert idle(list(run(name, "null", store=tmp_path, on="local").findings)) == []
