"""What recorded runs say about a claim, and how it is told: today's words, current before stale, full before quick."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sandlab as sl
from sandlab.cli.results import _gaps, last_findings
from sandlab.cli.screen import finding_rows
from sandlab.lab._exec.jobs import canonical
from sandlab.lab._report.ledger import definition
from sandlab.lab._report.published import last_published, verdicts
from sandlab.lab._store.plain import plain
from sandlab.lab.run import collect_version, is_current
from sandlab.studies.claims import judge
from sandlab.studies.study import AnyStudy

CLAIM = "nce/gaussian-1d.normalised-first"


@pytest.fixture
def study() -> AnyStudy:
    found: AnyStudy = sl.get("studies", "nce/gaussian-1d")
    return found


def record(folder: Path, study: AnyStudy, preset: str, *, current: bool = True, relation: str = "") -> None:
    """Write a run whose claims were measured; with `relation`, the claim above was worded otherwise."""
    config = study.presets[preset]
    version = collect_version(study, config) if current else "another"
    rows = [judge(claim, [1.0, 1.1, 0.9]).as_dict() for claim in study.due(preset)]
    rows = [{**row, "relation": relation} if relation and row["claim"] == CLAIM else row for row in rows]
    place = folder / study.name / preset
    place.mkdir(parents=True)
    about = {"collect": version, "config": plain(canonical(config)), "finished": 1.0 if preset == "full" else 2.0}
    (place / "run.json").write_text(json.dumps(about))
    (place / "findings.json").write_text(json.dumps(plain(rows)))


def test_a_run_is_current_while_settings_and_code_are_its_own(study):
    config = plain(canonical(study.presets["quick"]))
    now = collect_version(study, study.presets["quick"])
    assert is_current({"collect": now, "config": config}, study, "quick")
    assert not is_current({"collect": "another", "config": config}, study, "quick")
    assert not is_current({"collect": now, "config": config}, study, "full")
    assert not is_current({"config": config}, study, "quick")


def standing(study: AnyStudy, folder: Path) -> list[tuple[str, str]]:
    return [(run.preset, run.status) for run, _ in verdicts(study, folder).get(CLAIM, [])]


def test_the_full_run_says_most_as_long_as_it_is_current(study, tmp_path):
    record(tmp_path, study, "quick")
    record(tmp_path, study, "full")
    assert standing(study, tmp_path) == [("full", "current"), ("quick", "current")]


@pytest.mark.parametrize("garbled", ["", "{", "[" * 100_000])
def test_a_recorded_run_that_is_damaged_is_told_by_its_file(study, tmp_path, garbled):
    record(tmp_path, study, "quick")
    (tmp_path / study.name / "quick" / "run.json").write_text(garbled)
    with pytest.raises(sl.BadInput, match=r"run\.json is damaged"):
        standing(study, tmp_path)


def test_a_stale_full_run_stands_behind_the_current_quick_one(study, tmp_path):
    record(tmp_path, study, "quick")
    record(tmp_path, study, "full", current=False)
    assert standing(study, tmp_path) == [("quick", "current"), ("full", "stale")]


def test_what_was_found_for_other_words_is_no_verdict_on_the_claim(study, tmp_path):
    record(tmp_path, study, "full", current=False, relation="> 7")
    assert standing(study, tmp_path) == []
    assert verdicts(study, tmp_path)["nce/gaussian-1d.ence-first"]


def test_of_two_wordings_the_newer_one_is_shown(study, tmp_path):
    record(tmp_path, study, "quick")
    record(tmp_path, study, "full", relation="> 7")
    run, finding = last_published(study.name, tmp_path)[CLAIM]
    assert run.preset == "quick" and finding.relation != "> 7"
    assert last_published(study.name, tmp_path)["nce/gaussian-1d.ence-first"][0].preset == "full"


@pytest.mark.parametrize("name", ["verifier/representations", "automata/constructions", "dyck/attention-variation"])
def test_recorded_verdicts_are_about_the_claims_as_they_are_worded(name):
    study = sl.get("studies", name)
    words = {claim.id: definition(claim.quantity, str(claim.relation)) for claim in study.claims}
    shown = [finding for found in verdicts(study).values() for _, finding in found]
    assert shown and all(definition(each.quantity, each.relation) == words[each.claim] for each in shown)


def row_of(monkeypatch, study: AnyStudy, folder: Path) -> dict[str, Any]:
    """The claim as `sandlab claims` shows it, with an empty store."""
    monkeypatch.setattr("sandlab.lab._report.published.results_folder", lambda: folder)
    (folder / "store").mkdir(exist_ok=True)
    (row,) = (row for row in last_findings(study.name, folder / "store") if row["claim"] == CLAIM)
    return row


def test_a_stale_full_verdict_is_told_beside_the_current_quick_one(study, tmp_path, monkeypatch):
    record(tmp_path, study, "quick")
    record(tmp_path, study, "full", current=False)
    row = row_of(monkeypatch, study, tmp_path)
    assert (row["preset"], row["status"], row["why"]) == ("quick", "current", "")
    assert [(each["preset"], each["status"]) for each in row["others"]] == [("full", "stale")]
    words = str(finding_rows([row])[0][1])
    assert (
        "\nquick, 1970-01-01, current, reduced (" in words
        and "\nbeside it full, 1970-01-01, stale: ✓ holds, 1  [" in words
    )


def test_a_claim_without_a_verdict_says_what_it_waits_for(study, tmp_path, monkeypatch):
    row = row_of(monkeypatch, study, tmp_path)
    assert row["verdict"] == "" and row["why"] == "needs sandlab run nce/gaussian-1d"
    line = {"claim": CLAIM, "preset": "quick", "verdict": "fails", "relation": "> 7", "quantity": "words",
            "definition": "", "mean": 1, "low": 0, "high": 2, "seeds": 3, "device": "cpu", "date": 1}  # fmt: skip
    (tmp_path / "ledger.jsonl").write_text(json.dumps(line))
    told = f"needs sandlab run nce/gaussian-1d; asked otherwise before: sandlab claims --history {CLAIM}"
    assert row_of(monkeypatch, study, tmp_path)["why"] == told
    place = tmp_path / study.name / "quick"
    record(tmp_path, study, "quick", relation="> 7")
    (place / "tables.json").write_text(json.dumps({"not measured": [{"claim": CLAIM, "why": "no folder was given"}]}))
    assert row_of(monkeypatch, study, tmp_path)["why"] == "no folder was given"


def test_claims_without_a_verdict_are_counted_by_what_they_wait_for():
    due = [f"needs sandlab run a/{name}" for name in ("b --full", "c --full; asked otherwise before: …", "d")]
    rows = [{"why": why} for why in ("", *due, "no model")]
    assert [line.partition(" that ")[0] for line in _gaps(rows)] == ["not run: 2", "not run: 1"]
    assert _gaps(rows[:1]) == []
