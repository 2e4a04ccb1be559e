"""Findings on narrow and wide screens."""

from __future__ import annotations

import pytest

from sandlab.cli.screen import print_findings

FINDING = {
    **{"verdict": "holds", "held": True, "claim": "markov/weight-tying.some-long-claim-name", "mean": 0.171},
    **{"statement": "The loss of tied weights ends at the loss of the bigram in every one of the runs.", "low": 0.12},
    **{"high": 0.22, "count": 8, "relation": "above 0.0625", "paper": "0.273 to 0.590"},
}


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 160])
def test_no_column_is_lost_at_any_width(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_findings([FINDING], "markov/weight-tying")
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= columns
    words = " ".join(said.split())
    for part in ("✓ holds", FINDING["claim"], "must be", "above 0.0625", "paper", "0.590", "0.171", "every one of the"):
        assert str(part) in words
