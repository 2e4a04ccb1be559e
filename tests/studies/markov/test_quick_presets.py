"""The quick presets of the studies of one layer, as they are."""

from __future__ import annotations

import pytest
from stand_in import LAB

from sandlab.registry import get


@pytest.mark.slow
@pytest.mark.parametrize("name", ["markov/weight-tying", "markov/hessian", "markov/flow-portrait", "markov/low-rank"])
def test_every_claim_of_the_quick_preset_holds(name: str) -> None:
    study = get("studies", name)
    outcome = study.run(study.presets["quick"], LAB, "quick")
    assert {finding.verdict for finding in outcome.findings} == {"holds"}
