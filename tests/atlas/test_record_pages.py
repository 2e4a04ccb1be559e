"""What the atlas shows of claims, figures and cards is what is recorded."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

import sandlab as sl

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("words", "ours", "number"),
    [
        ("0.93", 0.9, 0.93), ("−1", -1.0, -1.0), ("at least 97 %", 0.98, 0.97), ("99.8 %", 99.0, 99.8),
        ("3/4", 1.0, 0.75), ("222 of 225", 1.0, 222 / 225), ("0.714 − 0.660", 0.05, 0.054), ("[3/4, 5/4]", 1.0, None),
        ("yes", 1.0, None), ("stage 1 to step 100", 1.0, None), ("99.8 % with 2 layers at length 100", 1.0, None),
        ("", 1.0, None),
    ],
)  # fmt: skip
def test_the_source_has_a_point_only_where_its_words_are_a_number(
    words: str, ours: float, number: float | None
) -> None:
    from sandlab.atlas.records import source_number

    assert source_number(words, ours) == (number if number is None else pytest.approx(number))


def test_claims_and_sources_are_what_is_recorded(client: TestClient) -> None:
    claims = {row["id"]: row for row in client.get("/api/claims").json()["claims"]}
    from sandlab.lab._report.published import last_published

    known = {name: each for study in sl.names("studies") for name, each in last_published(study).items()}
    assert set(claims) == set(known)
    for name, (run, finding) in known.items():
        row = claims[name]
        assert (row["verdict"], row["relation"], row["note"]) == (finding.verdict, finding.relation, finding.note)
        assert (row["preset"], row["date"]) == (run.preset, run.date)
        assert row["mean"] == (finding.mean if math.isfinite(finding.mean) else None)
    sources = client.get("/api/sources").json()
    assert len(sources["rows"]) > 300
    assert {"printed", "true", "test", "chapter"} == set(sources["errata"][0]) and len(sources["errata"]) > 150
    corrected = {name for name, row in claims.items() if row["verdict"] == "fails" and not row["expected"]}
    studies = {f"study:{name.partition('.')[0]}" for name in corrected}
    judged = [row["verdicts"] for row in sources["rows"] if studies.intersection(row["places"])]
    assert judged and all("corrected" in verdicts for verdicts in judged)
    unknown = [name for name in ("knowledge/fact-capacity.capacity-slope",) if name in claims]  # has "nan" in its past
    assert all(client.get("/api/history", params={"claim": name}).json()["history"] for name in unknown)
    runs = {(run["study"], run["preset"]): run for run in client.get("/api/standing?chapter=nce").json()["runs"]}
    assert runs and all(run["status"] in ("current", "stale") for run in runs.values())


def test_the_claims_are_read_without_numpy_or_a_study() -> None:
    program = """
import sys
from sandlab.atlas.records import claims, sources
print(len(claims()["claims"]) > 500, len(sources()["rows"]) > 300)
print([name for name in sys.modules if name in ("numpy", "scipy", "torch") or name.startswith("sandlab.studies.")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.stdout.split("\n")[:2] == ["True True", "[]"], done.stdout + done.stderr


def test_a_newly_recorded_run_is_shown_without_a_restart(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from sandlab.atlas import records

    shown = client.get("/api/claims").json()["claims"]
    monkeypatch.setattr(records, "_RESULTS", tmp_path)  # where nothing is recorded
    assert client.get("/api/claims").json()["claims"] == []
    folder = tmp_path / "markov" / "weight-tying" / "quick"
    shutil.copytree(DOCS / "results" / "markov" / "weight-tying" / "quick", folder)
    assert client.get("/api/claims").json()["claims"] == []  # remembered
    (tmp_path / "ledger.jsonl").write_text("{}")
    assert {row["study"] for row in client.get("/api/claims").json()["claims"]} == {"markov/weight-tying"}
    monkeypatch.undo()
    assert client.get("/api/claims").json()["claims"] == shown


def test_a_card_that_was_measured_here_is_shown(client: TestClient) -> None:
    from sandlab.lab._card.battery import BATTERY
    from sandlab.lab._card.kept import keep_card
    from sandlab.lab._card.measure import Card, Row

    before = client.get("/api/cards").json()["cards"]
    row = Row("parity", "longer", "errors", values=[0.25], worst=0.5, parameters=30)
    keep_card(Card("../Mine", BATTERY, "quick", 1, "cpu", [row]), client.app.state.kept.folder.parent)
    found = client.get("/api/cards").json()["cards"]
    assert found[:-1] == before and (found[-1]["model"], found[-1]["rows"][0]["score"]) == ("../Mine", 0.5)
    assert client.get("/api/cards", params={"store": "/"}).status_code == 400


def test_a_recorded_figure_is_served_and_nothing_beside_it(client: TestClient) -> None:
    from sandlab.lab._report.published import published

    run, file = next((run, file) for run in published() for file in sorted(run.folder.rglob("*.svg")))
    answer = client.get(f"/figure/{run.study}/{run.preset}/{file.stem}")
    assert answer.text == file.read_text(encoding="utf-8") and answer.headers["content-type"].startswith("image/svg")
    for other in ("nothing", "..%2f" + file.stem, "run.json"):
        assert client.get(f"/figure/{run.study}/{run.preset}/{other}").status_code == 404
