"""What happens when things go wrong: killed, raced, damaged, full."""

from __future__ import annotations

import os
import signal
import time

import pytest
import toys
from toys import Toy, average
from toys import study as uniform

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.lab._exec.executors import Local
from sandlab.lab._exec.jobs import JobFailed, task
from sandlab.lab._store.cache import Damaged
from sandlab.lab._store.store import Store
from sandlab.lab.laboratory import Laboratory


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv(toys.LOG, str(tmp_path / "jobs.log"))
    monkeypatch.setenv("TOY_MARK", str(tmp_path / "mark"))
    return lambda: (tmp_path / "jobs.log").read_text().splitlines()


def test_a_killed_run_resumes_where_it_stopped_and_finds_the_same(drive, tmp_path):
    settings = {"seeds": 9, "pause": 0.25}
    process = drive.start("processes:2", **settings)
    drive.wait_for(lambda: len(Store(drive.store).cache.stored()) >= 3, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = set(Store(drive.store).cache.stored())
    finished = [seed for seed in range(9) if task(average, Toy(seed, pause=0.25)).key in kept]
    assert 3 <= len(finished) < 9

    answer = drive.finish(drive.start("processes:2", **settings))
    assert answer["jobs"] == {"jobs": 9, "cached": len(finished), "computed": 9 - len(finished), "retried": 0}
    assert all(drive.lines("start").count(seed) == 1 for seed in finished)

    whole = sl.run(uniform, store=tmp_path / "other", settings=settings | {"pause": 0.0})
    assert answer["metrics"] == whole.metrics


def test_workers_of_a_killed_run_end_with_it(drive):
    process = drive.start("processes:2", seeds=4, pause=30)
    drive.wait_for(lambda: len(drive.lines("start")) >= 2, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert _ends(process.pid)


def test_an_interrupted_run_stops_at_once_and_leaves_no_process(drive):
    process = drive.start("processes:2", seeds=4, pause=30)
    drive.wait_for(lambda: len(drive.lines("start")) >= 2, process)
    os.killpg(process.pid, signal.SIGINT)
    started = time.monotonic()
    process.communicate(timeout=60)
    assert time.monotonic() - started < 15
    assert process.returncode != 0
    assert _ends(process.pid)
    assert Store(drive.store).latest() == []


def test_two_runs_at_once_both_finish_and_compute_each_job_once(drive):
    settings = {"seeds": 8, "pause": 0.2}
    both = [drive.start("local", **settings), drive.start("processes:2", **settings)]
    first, second = [drive.finish(process) for process in both]
    assert first["metrics"] == second["metrics"]
    assert sorted(drive.lines("start")) == list(range(8))
    assert first["jobs"]["jobs"] == second["jobs"]["jobs"] == 8
    assert list(drive.store.rglob("*.part")) == []
    assert list(drive.store.rglob("*.lock")) == []
    store = Store(drive.store)
    assert len(store.cache.stored()) == 8
    assert all(record.intact() for record in store.latest())


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        ("json", "flip"),
        ("json", "truncate"),
        ("json", "empty"),
        ("json", "delete"),
        ("npz", "flip"),
        ("npz", "delete"),
        ("safetensors", "flip"),
        ("safetensors", "truncate"),
    ],
)
def test_a_damaged_entry_is_noticed_and_computed_again(tmp_path, log, damage, suffix):
    store = Store.open(tmp_path / "runs")
    configs = [Toy(seed, tensors=True) for seed in range(4)]
    before = Laboratory(store, Local()).map(average, configs)
    key = task(average, configs[2]).key
    (file,) = store.cache.path(key).parent.glob(f"{key}*.{suffix}")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes({"flip": bytes(data), "truncate": bytes(data[:-9]), "empty": b"", "delete": b""}[damage])
    if damage == "delete":
        file.unlink()
    count = len(log())
    quiet = damage == "delete" and suffix == "json"
    with _warns(not quiet):
        after = Laboratory(store, Local()).map(average, configs)
    assert log()[count:] == ["start 2", "done 2"]
    assert [result["mean"] for result in after] == [result["mean"] for result in before]
    assert after[2]["head"].tolist() == before[2]["head"].tolist()
    assert store.cache.read(key) is not None


def test_a_damaged_run_is_run_again_from_its_jobs(tmp_path, log):
    first = sl.run(uniform, store=tmp_path / "runs")
    (first.path / "findings.json").write_bytes(b"[]")
    count = len(log())
    with pytest.warns(Damaged, match="damaged"):
        again = sl.run(uniform, store=tmp_path / "runs")
    assert again.path != first.path
    assert again.findings == first.findings
    assert len(log()) == count


def test_a_damaged_index_is_made_anew(tmp_path):
    first = sl.run(uniform, store=tmp_path / "runs")
    (tmp_path / "runs" / "index.sqlite").write_bytes(b"not a database, by any means " * 100)
    assert [record.path for record in Store(tmp_path / "runs").latest()] == [first.path]
    with pytest.warns(Damaged, match=r"index\.sqlite"):
        again = sl.run(uniform, store=tmp_path / "runs")
    assert again.reused
    assert again.path == first.path


def test_a_full_disk_is_said_clearly_and_the_store_stays_readable(drive, small_disk, tmp_path):
    store = small_disk.folder / "runs"
    sl.run(uniform, store=store)
    settings = {"seeds": 8, "size": 1001, "bulk": 200_000}
    process = drive.start(store=store, limit=small_disk.limit, **settings)
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "StoreFull: no room to write" in err
    assert "same command again" in err

    opened = Store(store)
    (record,) = opened.latest()
    assert record.intact()
    kept = opened.cache.stored()
    assert all(opened.cache.read(key) is not None for key in kept)
    assert list(store.rglob("*.part")) == []

    small_disk.enlarge()
    again = sl.run(uniform, store=store, settings=settings)
    assert again.about["jobs"]["cached"] == len(kept) - 6
    assert again.metrics == sl.run(uniform, store=tmp_path / "other", settings=settings).metrics


def test_a_job_whose_process_dies_is_tried_again(drive):
    answer = drive.finish(drive.start("processes:2", trouble="die once"))
    assert answer["jobs"] == {"jobs": 6, "cached": 0, "computed": 6, "retried": 1}
    assert sorted(drive.lines("start")) == [0, 1, 2, 3, 3, 4, 5]


@pytest.mark.parametrize("on", ["local", "processes:2"])
def test_an_error_in_a_job_names_job_and_config_and_keeps_the_others(tmp_path, log, on):
    store = Store.open(tmp_path / "runs")
    with pytest.raises(JobFailed, match=r"toys:average\(Toy\(seed=3.*the third one breaks"):
        sl.run(uniform, store=store, on=on, settings={"trouble": "raise"})
    keys = [task(average, Toy(seed, trouble="raise")).key for seed in range(6)]
    assert set(store.cache.stored()) & set(keys[:3])
    assert keys[3] not in store.cache.stored()
    assert list(store.folder.rglob("*.lock")) == []


def test_bad_input_in_a_job_stays_bad_input(tmp_path):
    with pytest.raises(BadInput, match="size must be"):
        sl.run(uniform, store=tmp_path / "runs", settings={"size": 0})


def _ends(group: int) -> bool:
    """Whether every process of the group ends far sooner than the jobs' own half minute."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def _warns(expected: bool):
    import contextlib

    return pytest.warns(Damaged, match="computed again") if expected else contextlib.nullcontext()


def test_a_run_that_waits_names_the_holder_and_says_that_it_is_stopped(drive, tmp_path):
    """D14."""
    settings = {"seeds": 2, "pause": 1.0}
    holder = drive.start("local", **settings)
    drive.wait_for(lambda: len(drive.lines("start")) >= 1, holder)
    os.kill(holder.pid, signal.SIGSTOP)
    told: list[str] = []

    def listen(progress):
        told.append(str(progress))
        if "which is stopped" in told[-1]:
            os.kill(holder.pid, signal.SIGCONT)

    report = sl.run(uniform, store=drive.store, settings=settings, progress=listen)
    drive.finish(holder)
    assert any(f"1 being computed by process {holder.pid} on" in line and "which is stopped" in line for line in told)
    assert report.metrics == sl.run(uniform, store=drive.store, settings=settings).metrics
