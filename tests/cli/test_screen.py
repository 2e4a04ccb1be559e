"""Findings on narrow and wide screens."""

from __future__ import annotations

import pytest

from sandlab.cli.screen import print_findings, print_sentences, print_table

FINDING = {
    **{"verdict": "holds", "held": True, "claim": "markov/weight-tying.some-long-claim-name", "mean": 0.171},
    **{"statement": "The loss of tied weights ends at the loss of the bigram in every one of the runs.", "low": 0.12},
    **{"high": 0.22, "count": 8, "relation": "above 0.0625", "paper": "0.273 to 0.590"},
    "quantity": "Final loss minus the loss of the bigram.",
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


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_sentence_is_followed_by_what_was_measured(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_sentences([FINDING], "(1 of 2) markov/weight-tying")
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= columns
    words = " ".join(said.split())
    assert f"✓ holds {FINDING['statement']} Final loss minus the loss of the bigram: 0.171" in words
    assert "must be above 0.0625; paper: 0.273 to 0.590" in words


@pytest.mark.parametrize("show", [print_findings, print_sentences])
def test_an_exact_number_has_neither_interval_nor_tolerance(show, capsys: pytest.CaptureFixture[str]) -> None:
    show([{**FINDING, "mean": 2.0, "low": 2.0, "high": 2.0, "count": 1, "relation": "= 2 ± 0"}], "toy/exact")
    said = capsys.readouterr().out
    assert "[" not in said and "±" not in said and "= 2" in said


def test_a_misprint_that_fails_is_called_expected(capsys: pytest.CaptureFixture[str]) -> None:
    print_sentences([{**FINDING, "verdict": "fails", "held": False}, {**FINDING, "verdict": "fails"}], "toy/misprint")
    said = capsys.readouterr().out
    assert said.count("✗ fails") == 2 and said.count("✗ fails, as expected") == 1


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_no_word_of_a_table_is_broken(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor is its title, where the table is narrower than the screen."""
    monkeypatch.setenv("COLUMNS", str(columns))
    names = ["experiment", "world", "parameters", "best possible", "accuracy", "transformer"]
    row = ["Transformer, lr=0.001", "AssociativeRecall", 7232, 0.0069, "not reached", "0.97"]
    print_table(names, [row, row], "a title that is not broken to fit the table")
    print_table(["a", "b"], [["1", "2"]], "a title that is longer than its table")
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= columns
    words = " ".join(said.split())
    assert "a title that is longer than its table a b" in words
    for part in (*names[1:], *map(str, row)):
        assert part in words, part
