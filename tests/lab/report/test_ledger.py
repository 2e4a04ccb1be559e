"""The ledger of verdicts: appended, never overwritten; a changed claim keeps its former verdicts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import sandlab as sl
from sandlab.lab._exec.jobs import canonical
from sandlab.lab._report.ledger import Entry, append, definition, former, overturned, read, removed
from sandlab.lab._report.published import ledger, null_findings
from sandlab.lab._store.plain import plain
from sandlab.lab.run import collect_version
from sandlab.studies.claims import judge

FIRST = Entry("a/b.c", "full", "fails", "> 0.8", "share", definition("share", "> 0.8"), 0.7, 0.6, 0.75, 8, "cpu", 1.0)


def test_entries_are_appended_once_and_read_by_date(tmp_path):
    path = tmp_path / "ledger.jsonl"
    easier = replace(FIRST, verdict="holds", relation="> 0.5", definition=definition("share", "> 0.5"), date=2.0)
    append(path, [easier])
    append(path, [FIRST, easier])
    assert read(path) == [FIRST, easier]
    assert read(path, "a/b.other") == []
    assert former(read(path), easier.definition) == [FIRST]


@pytest.mark.parametrize("torn", ['{"claim": "a/b', "[]", '{"claim": "a/b.c"}', "[" * 100_000, b"\xff"])
def test_a_line_that_was_torn_is_told_by_its_number_and_nothing_is_appended_to_it(tmp_path, torn):
    path = tmp_path / "ledger.jsonl"
    append(path, [FIRST])
    path.write_bytes(path.read_bytes() + (torn if isinstance(torn, bytes) else torn.encode()))
    before = path.read_bytes()
    for ask in (read, lambda path: append(path, [replace(FIRST, date=2.0)])):
        with pytest.raises(sl.BadInput, match=r"line 2 of .*ledger\.jsonl is no verdict"):
            ask(path)
    assert path.read_bytes() == before


def test_a_verdict_that_was_overturned_in_the_same_words_stays_visible():
    made = [
        replace(FIRST, preset=preset, verdict=verdict, date=date)
        for preset, verdict, date in (
            ("full", "holds", 1.0), ("full", "fails", 2.0), ("full", "holds", 3.0), ("full", "inconclusive", 3.0),
            ("quick", "holds", 4.0),
        )
    ]  # fmt: skip
    assert [(each.verdict, each.date) for each in overturned(made, FIRST.definition)] == [
        ("fails", 2.0),
        ("holds", 3.0),
    ]
    assert overturned(made, "other words") == []


@pytest.mark.parametrize("claim", ["automata/indirect.car", "automata/depth-table.parity-shallow"])
def test_claims_that_two_seeds_seemed_to_refute_still_show_it(claim):
    study = sl.get("studies", claim.rpartition(".")[0])
    (now,) = (each for each in study.claims if each.id == claim)
    told = overturned(ledger(claim), definition(now.quantity, str(now.relation)))
    assert ("quick", "fails") in [(each.preset, each.verdict) for each in told]


def test_capitals_and_full_stops_are_no_change_of_a_claim():
    assert definition("Share of runs.", "> 0.5") == definition("share of  runs", "> 0.5")
    assert definition("share of runs", "> 0.5") != definition("share of runs", "> 0.4")


def test_the_claim_that_failed_at_the_source_s_size_is_still_in_the_published_ledger():
    verdicts = [(entry.preset, entry.verdict) for entry in ledger("ngrams/stages.plateau-is-bigram")]
    assert ("full", "fails") in verdicts


def test_claims_that_a_study_no_longer_makes_keep_their_last_verdicts():
    made = [
        replace(FIRST, claim=f"a/{name}", date=date)
        for name, date in (("b.kept", 1.0), ("b.gone", 2.0), ("b.gone", 3.0), ("bc.other", 4.0))
    ]
    assert [each.date for each in removed(made, "a/b", ["a/b.kept"])] == [3.0]


@pytest.mark.parametrize(
    "claim",
    [
        "dyck/balance.correlation-all",
        "dyck/theorems.equivalence",
        "markov/chi2-gradient.information",
        "markov/constructions.information-falls",
    ],
)
def test_removed_claims_are_still_told(claim):
    study = sl.get("studies", claim.rpartition(".")[0])
    told = removed(ledger(), study.name, [each.id for each in study.claims])
    assert any(each.claim == claim and each.verdict == "holds" for each in told)


@pytest.mark.parametrize(
    "claim",
    [
        "dyck/copying.attention-irrelevant",
        "dyck/variation-table.first-layer",
        "markov/constructions.chow-liu",
        "markov/induction-heads.plateau",
    ],
)
def test_changed_claims_show_what_was_asked_before(claim):
    study = sl.get("studies", claim.rpartition(".")[0])
    (now,) = (each for each in study.claims if each.id == claim)
    assert former(ledger(claim), definition(now.quantity, str(now.relation)))


def test_a_recorded_null_counts_while_code_settings_and_claims_are_what_they_were(tmp_path):
    study = sl.get("studies", "nce/gaussian-1d")
    assert null_findings(study, tmp_path) is None
    findings = [judge(claim, [0.0, 0.0, 0.0]).as_dict() for claim in study.due("null")]
    config = study.presets["null"]
    about = {"collect": collect_version(study, config), "config": plain(canonical(config))}
    folder = tmp_path / study.name / "null"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(about))
    (folder / "findings.json").write_text(json.dumps(plain(findings)))
    found = null_findings(study, tmp_path)
    assert found is not None and len(found) == len(study.due("null"))
    (folder / "findings.json").write_text(json.dumps(plain([{**findings[0], "relation": "> 7"}, *findings[1:]])))
    assert null_findings(study, tmp_path) is None
    (folder / "findings.json").write_text(json.dumps(plain(findings)))
    (folder / "run.json").write_text(json.dumps({**about, "collect": "another"}))
    assert null_findings(study, tmp_path) is None


def test_a_claim_whose_words_are_the_same_has_no_former_wording():
    study = sl.get("studies", "dyck/theorems")
    (claim,) = (each for each in study.claims if each.id == "dyck/theorems.sufficiency")
    history = ledger(claim.id)
    assert history and former(history, definition(claim.quantity, str(claim.relation))) == []
