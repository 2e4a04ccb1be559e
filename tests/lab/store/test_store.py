"""The store heals: folders are the truth, the index is mended, files from elsewhere are confined."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time

import pytest
import toys
from toys import study as uniform

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.lab._report.publish import publish_latest
from sandlab.lab._report.site import write_site
from sandlab.lab._store.cache import Damaged
from sandlab.lab._store.store import Store


@pytest.fixture
def store(tmp_path):
    sl.run(uniform, store=tmp_path / "runs")
    return Store(tmp_path / "runs")


def remove(index):
    index.unlink()


def empty(index):
    index.write_bytes(b"")


def garble(index):
    index.write_bytes(b"no database" * 100)


def foreign(index):
    index.unlink()
    with sqlite3.connect(index) as other:
        other.execute("create table runs (something text not null)")


def folder(index):
    index.unlink()
    index.mkdir()


@pytest.mark.parametrize("harm", [remove, empty, garble, foreign, folder])
@pytest.mark.filterwarnings("ignore")
def test_whatever_happens_to_the_index_no_run_is_forgotten(store, harm):
    """D2."""
    for suffix in ("-wal", "-shm"):
        store.index.path.with_name(store.index.path.name + suffix).unlink(missing_ok=True)
    harm(store.index.path)
    assert [record.about["study"] for record in Store(store.folder).latest()] == ["toy/uniform"]
    assert sl.run(uniform, store=store.folder).reused
    opened = Store.open(store.folder)
    assert len(opened.index.rows("select * from runs")) == 1
    assert len(opened.index.rows("select * from findings")) == 2
    assert len(opened.index.rows("select * from jobs")) == 6
    assert opened.mend_index() == []


def test_a_run_that_the_index_misses_is_entered_and_one_without_a_folder_is_taken_out(store):
    (record,) = store.latest()
    store.index.forget([record.path.relative_to(store.folder).as_posix()])
    assert any("was entered" in line for line in store.mend_index())
    record.path.rename(store.folder / "elsewhere")
    assert any("without a folder" in line for line in store.mend_index())


def test_a_changed_finding_is_noticed_and_not_shown(store):
    """D8."""
    (record,) = store.latest()
    file = record.path / "findings.json"
    file.write_text(file.read_text().replace('"fails"', '"holds"'))
    with pytest.warns(Damaged, match="is damaged"):
        assert store.latest() == []
    with pytest.warns(Damaged):
        assert not sl.run(uniform, store=store.folder).reused


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[0].update(verdict="perhaps"),
        lambda rows: rows[1].update(verdict={"a": 1}),
        lambda rows: rows[0].update(mean="much"),
        lambda rows: rows[0].update(held="no"),
        lambda rows: rows[0].update(statement=None),
        lambda rows: rows[0]["values"].append("x"),
        lambda rows: rows[1].pop("claim"),
        lambda rows: rows.append([]),
    ],
)
def test_findings_of_another_form_are_not_shown_though_their_checksum_is_right(store, change):
    """D7, D8: a file from elsewhere."""
    (record,) = store.latest()
    change(rows := record.read("findings.json"))
    (record.path / "findings.json").write_text(text := json.dumps(rows))
    rewrite(record, files={**record.files, "findings.json": hashlib.sha256(text.encode()).hexdigest()})
    with pytest.warns(Damaged, match="is damaged"):
        assert store.latest() == []


def test_findings_without_a_checksum_are_not_shown(store):
    """D8: whoever changes a finding may also leave out its checksum."""
    (record,) = store.latest()
    rewrite(record, files={name: digest for name, digest in record.files.items() if name != "findings.json"})
    with pytest.warns(Damaged, match="is damaged"):
        assert store.latest() == []


def test_fresh_means_computed_now_whatever_the_clock_says(store, tmp_path, monkeypatch):
    """D10: the jobs themselves are counted, for the report once repeated the counts of the older run."""
    (older,) = store.latest()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 86400)
    monkeypatch.setenv(toys.LOG, str(tmp_path / "log"))
    report = sl.run(uniform, store=store.folder, resume=False)
    assert (tmp_path / "log").read_text().count("start") == report.about["jobs"]["computed"] == 6
    (last,) = store.latest()
    assert last.path == report.path != older.path


def rewrite(record, **changes):
    about = {**record.about, **changes}
    (record.path / "run.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    "changes",
    [
        {"study": "/abs/x"},
        {"title": None},
        {"config": {}},
        {"jobs": {"jobs": "many"}},
        {"seconds": "long"},
        {"finished": float("inf")},
        {"finished": 1e300},
        {"study": "../../x"},
        {"preset": "../../../X"},
        {"files": {"../../../../secret.svg": "0"}},
        {"files": {"/etc/passwd": "0"}},
        {"files": []},
        {"finished": "soon"},
    ],
)
def test_names_in_a_foreign_store_are_confined_to_its_folder(store, tmp_path, changes):
    """D5."""
    (record,) = store.latest()
    rewrite(record, **changes)
    before = sorted(path for path in tmp_path.rglob("*") if "runs" not in path.parts)
    with pytest.warns(Damaged):
        assert store.latest() == []
    with pytest.warns(Damaged), pytest.raises(BadInput, match="no finished run"):
        write_site(store, tmp_path / "out" / "report")
    with pytest.warns(Damaged):
        assert publish_latest(store, "toy/uniform", tmp_path / "out" / "docs") == []
    assert sorted(path for path in tmp_path.rglob("*") if "runs" not in path.parts) == before


@pytest.mark.parametrize("text", ["[]", "{", "null", '{"study": 3}'])
def test_a_damaged_description_is_told_and_left_out(store, text):
    """D8."""
    (record,) = store.latest()
    (record.path / "run.json").write_text(text)
    with pytest.warns(Damaged):
        assert store.latest() == []


def test_a_study_s_name_cannot_leave_the_store(store):
    """D5."""
    about = {**store.latest()[0].about, "study": "../../x"}
    with pytest.raises(BadInput, match="study must be"):
        store.save(about, {})


def test_scripts_in_figures_do_not_run_in_the_report(store, tmp_path):
    """D5."""
    (record,) = store.latest()
    figure = record.path / "figures" / "means.svg"
    figure.write_text("<svg><script>alert(1)</script></svg>")
    files = {**record.files, "figures/means.svg": hashlib.sha256(figure.read_bytes()).hexdigest()}
    rewrite(record, files=files)
    page = write_site(store, tmp_path / "report").parent / "toy" / "uniform" / "quick.html"
    assert "<script" not in page.read_text() and "<svg" not in page.read_text()


def test_old_locks_and_parts_of_the_dead_are_cleared(store):
    left = [store.folder / "locks" / "x.lock", store.folder / "cache" / "ab" / "y.lock"]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        os.utime(path, (0, 0))
    Store.open(store.folder)
    assert not any(path.exists() for path in left)


@pytest.mark.parametrize(
    "change",
    [
        {"structure": "{no json"},
        {"structure": "[" * 100_000},
        {"structure": '{"@array": "a7"}'},
        {"structure": None},
        {"created": "now"},
        {"files": {}},
        {"files": {"arrays": "../../x"}},
        {"files": {"elsewhere": "0"}},
    ],
)
def test_a_sealed_entry_of_the_wrong_form_is_computed_again(store, change):
    """D22."""
    from sandlab.lab._store.cache import _seal

    file = next((store.folder / "cache").rglob("*.json"))
    document = json.loads(file.read_text())
    document["entry"].update(change)
    document["checksum"] = _seal(document["entry"])
    file.write_text(json.dumps(document))
    with pytest.warns(Damaged, match="computed again"):
        report = sl.run(uniform, store=store.folder, seeds=7)
    assert report.about["jobs"]["computed"] == 2


def test_a_job_that_calls_exit_is_a_failed_job(tmp_path):
    """D17."""
    import toys

    from sandlab.lab._exec.jobs import Failed, execute, task

    outcome = execute(task(toys.leave, toys.Toy(0)))
    assert isinstance(outcome, Failed) and outcome.kind == "SystemExit" and not outcome.transient
