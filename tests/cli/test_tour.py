"""The tour, and what is to be run next."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import sandlab as sl
from sandlab.cli import call
from sandlab.cli.results import _tally
from sandlab.cli.studies import TOUR


@pytest.fixture
def toy() -> str:
    sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))
    import toys

    return str(toys.study.name)


def test_the_tour_runs_its_studies_and_ends_with_the_report(capsys, toy, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sandlab.cli.studies.TOUR", (toy,))
    assert call(["tour", "--on", "local", "--store", "runs"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("1 study,") and "✓ holds" in text and "✗ fails, as expected" in text
    assert text.endswith("report/index.html\n") and Path("report/index.html").is_file()


def test_studies_of_a_row_are_numbered_and_the_misprints_counted(capsys, toy, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("sandlab.cli.studies.TOUR", (toy, toy))
    assert call(["tour", "--on", "local", "--store", str(tmp_path / "runs"), "--out", str(tmp_path / "report")]) == 0
    text = capsys.readouterr().out
    assert f"(1 of 2) {toy}: " in text and f"(2 of 2) {toy}: " in text
    assert "Failing as expected: 2 claims" in text


def test_the_tour_has_one_study_of_a_chapter_at_most() -> None:
    chapters = [name.partition("/")[0] for name in TOUR]
    assert set(TOUR) <= set(sl.names("studies")) and len(set(chapters)) == len(chapters) >= 12


@pytest.mark.parametrize("columns", [80, 120])
def test_what_is_to_be_run_next_can_be_copied(capsys, toy, monkeypatch, columns) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sandlab.lab._report.agenda.published", lambda folder: [])
    monkeypatch.setattr("sandlab.lab._report.agenda.names", lambda kind: [toy, "reasoning/self-training-variants"])
    assert call(["results"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    for command in (toy, f"{toy} --full", "reasoning/self-training-variants --full --device cuda"):
        assert any(line.endswith(f" sandlab run {command}") for line in lines)
    assert lines[-1].endswith(" missing")


def test_verdicts_are_counted() -> None:
    rows = [{"verdict": "holds", "held": True, "status": "stale"}, {"verdict": "fails", "held": False, "status": ""}]
    rows += [{"verdict": "", "held": True, "status": ""}] * 3
    assert _tally(rows) == "holds: 1, fails as expected: 1, not run: 3; stale: 1"
