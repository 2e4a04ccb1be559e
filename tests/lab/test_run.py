"""A run: what it leaves in the store, what it reuses, how it is told and shown."""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
import toys
from toys import Plan, Toy, average
from toys import study as uniform

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.lab._exec.executors import Local, executor
from sandlab.lab._exec.jobs import JobFailed, Resources, task
from sandlab.lab._exec.processes import Processes
from sandlab.lab._report.ledger import read as read_ledger
from sandlab.lab._report.publish import publish_latest
from sandlab.lab._report.site import write_site
from sandlab.lab._store.environment import environment, machine
from sandlab.lab._store.plain import plain
from sandlab.lab._store.store import Store
from sandlab.lab.laboratory import Laboratory, Progress
from sandlab.lab.run import on_bar
from sandlab.progress import ProgressBar


@pytest.fixture
def count(tmp_path, monkeypatch):
    """How many jobs were computed so far."""
    monkeypatch.setenv(toys.LOG, str(tmp_path / "jobs.log"))
    log = tmp_path / "jobs.log"
    return lambda: log.read_text().count("start") if log.exists() else 0


def test_a_report_holds_findings_figures_metrics_and_a_readable_folder(tmp_path):
    report = sl.run(uniform, store=tmp_path)
    assert [finding.verdict for finding in report.findings] == ["holds", "fails"]
    assert report.surprises == []
    truth = [average(Toy(seed))["mean"] for seed in range(6)]
    assert report.metrics["toy/uniform.mean"] == truth
    assert report.figures["means"].read_text().startswith("<?xml")
    assert report.figures["means"].with_suffix(".png").read_bytes()[:4] == b"\x89PNG"
    table = pq.read_table(report.path / "metrics.parquet").to_pydict()
    assert table["value"][:6] == truth
    assert pq.read_table(report.path / "tables" / "means.parquet").to_pydict()["mean"] == truth
    about = json.loads((report.path / "environment.json").read_text())
    assert about["python"] == ".".join(map(str, sys.version_info[:3]))
    assert about["packages"]["torch"]
    assert "toy/uniform (quick)" in str(report)
    assert report.tables["means"][2]["seed"] == 2


def test_the_same_run_again_computes_nothing_and_a_larger_one_only_what_is_new(tmp_path, count):
    first = sl.run(uniform, store=tmp_path / "runs")
    assert count() == 6
    again = sl.run(uniform, store=tmp_path / "runs")
    assert again.reused and again.path == first.path and count() == 6
    more = sl.run(uniform, store=tmp_path / "runs", seeds=8)
    assert more.about["jobs"] == {"jobs": 8, "cached": 6, "computed": 2, "retried": 0}
    assert count() == 8
    fresh = sl.run(uniform, store=tmp_path / "runs", resume=False)
    assert not fresh.reused and count() == 14
    assert fresh.findings == first.findings


def test_equal_configs_of_one_map_are_computed_once(tmp_path, count):
    lab = Laboratory(Store.open(tmp_path / "runs"), Local())
    results = lab.map(average, [Toy(1), Toy(2), Toy(1)])
    assert count() == 2
    assert results[0]["mean"] == results[2]["mean"] != results[1]["mean"]
    assert lab.map(average, []) == []


def test_the_index_lists_runs_findings_and_jobs(tmp_path):
    report = sl.run(uniform, store=tmp_path)
    index = Store(tmp_path).index
    (row,) = index.rows("select * from runs")
    assert tmp_path / row["path"] == report.path
    assert row["study"] == "toy/uniform"
    verdicts = index.rows("select claim, verdict from findings order by claim")
    assert [each["verdict"] for each in verdicts] == ["holds", "fails"]
    assert len(index.rows("select * from jobs")) == 6
    assert index.rows("pragma journal_mode")[0]["journal_mode"] == "wal"


def test_the_store_is_found_by_argument_environment_or_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SANDLAB_STORE", raising=False)
    assert str(Store().folder) == "runs"
    monkeypatch.setenv("SANDLAB_STORE", str(tmp_path / "there"))
    assert Store().folder == tmp_path / "there"
    assert Store(tmp_path / "here").folder == tmp_path / "here"
    assert Store(tmp_path / "nowhere").latest() == []
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="must be a folder"):
        Store(tmp_path / "file")


def test_what_a_killed_run_left_half_written_is_removed_later(tmp_path):
    store = Store.open(tmp_path)
    old, young = tmp_path / "cache" / "ab" / ".x.part", tmp_path / "cache" / "ab" / ".y.part"
    partial = tmp_path / "studies" / "a" / "quick" / ".partial-1"
    partial.mkdir(parents=True)
    old.parent.mkdir(parents=True)
    for file in (old, young, partial / "run.json"):
        file.write_text("{}")
    for path in (old, partial):
        os.utime(path, (0, 0))
    assert store.latest() == []
    Store.open(tmp_path)
    assert not old.exists() and not partial.exists() and young.exists()


def test_bad_requests_are_refused_before_anything_runs(tmp_path, count):
    for options, words in [
        ({"preset": "medium"}, "no preset 'medium'"),
        ({"settings": {"sise": 3}}, "did you mean 'size'"),
        ({"seeds": 0}, "seeds must be"),
        ({"device": "tpu"}, "device must be one of"),
        ({"device": "cuda"}, "finds no CUDA device"),
        ({"on": "proceses"}, "did you mean 'processes'"),
        ({"on": "processes:many"}, "processes:4"),
    ]:
        with pytest.raises(BadInput, match=words):
            sl.run(uniform, store=tmp_path / "runs", **options)
    with pytest.raises(BadInput, match="did you mean 'toy/uniform'"):
        sl.run("toy/unifrom", store=tmp_path / "runs")
    assert count() == 0


def test_seeds_are_changed_wherever_settings_have_them():
    from sandlab.lab.run import has_seeds, with_seeds

    training = sl.learning.Training(steps=1)
    world, config = sl.worlds.Dyck(), sl.models.TransformerConfig(vocab=3, length=4)
    experiment = sl.learning.Experiment(world, config, training, seeds=(4, 5))
    changed = with_seeds((Plan(), experiment), 3)
    assert changed[0].seeds == 3 and changed[1].seeds == (0, 1, 2)
    assert not has_seeds(training) and with_seeds(training, 3) is training


def test_stored_results_are_judged_and_drawn_again_without_computing(tmp_path, count):
    first = sl.run(uniform, store=tmp_path / "runs")
    again = sl.run(uniform, store=tmp_path / "runs", judge_only=True)
    assert count() == 6 and again.findings == first.findings and again.path != first.path
    assert again.figures["means"].is_file() and again.about["finished"] == first.about["finished"]
    with pytest.raises(BadInput, match="no stored results in full"):
        sl.run(uniform, "full", store=tmp_path / "runs", judge_only=True)


def test_a_passing_failure_is_tried_again_and_a_lasting_one_raised(tmp_path, monkeypatch):
    from sandlab.lab import laboratory

    monkeypatch.setattr(laboratory, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(laboratory, "_TRIES", 4)
    seen: list[Progress] = []
    store = Store.open(tmp_path)
    lab = Laboratory(store, Flaky(failures=2), progress=lambda p: seen.append(replace(p)))
    assert lab.map(average, [Toy(0)])[0]["mean"] == average(Toy(0))["mean"]
    assert seen[-1].failed == 2
    assert "2 failed and tried again" in str(seen[-1])
    with pytest.raises(JobFailed, match=r"toys:average.*Lost: gone"):
        Laboratory(store, Flaky(failures=9)).map(average, [Toy(1)])


@pytest.mark.parametrize("other_finishes", [True, False])
def test_a_job_claimed_by_another_run_is_waited_for(tmp_path, count, other_finishes):
    from sandlab.lab._exec.jobs import execute

    store, sent = Store.open(tmp_path / "runs"), task(average, Toy(0))
    other = store.cache.lock(sent.key)
    assert other.acquire()
    lab = Laboratory(store, Local())
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(lab.map, average, [Toy(0), Toy(1)])
        time.sleep(0.5)
        assert not waiting.done()
        if other_finishes:
            store.keep(sent, execute(sent))
        other.release()
        first, second = waiting.result(timeout=30)
    assert (first["mean"], second["mean"]) == (average(Toy(0))["mean"], average(Toy(1))["mean"])
    assert lab.counts["cached"] == int(other_finishes)
    assert lab.counts["computed"] == 2 - int(other_finishes)


class Flaky(Local):
    """Loses its first few tasks, as a cluster loses nodes."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    def collect(self, timeout: float):
        from sandlab.lab._exec.jobs import Failed

        if self.failures:
            self.failures -= 1
            return [(self._waiting.pop(), Failed("Lost", "gone", transient=True))]
        return super().collect(timeout)


def test_results_do_not_depend_on_where_they_are_computed(tmp_path):
    here = sl.run(uniform, store=tmp_path / "a")
    workers = Processes(2)
    try:
        there = sl.run(uniform, store=tmp_path / "b", on=workers)
        alone = sl.run(uniform, store=tmp_path / "b", on=workers, seeds=7)
    finally:
        workers.close()
    assert here.findings == there.findings
    assert alone.about["jobs"] == {"jobs": 7, "cached": 6, "computed": 1, "retried": 0}
    assert isinstance(executor("processes:3"), Processes)
    assert executor("processes:3").slots == 3


def test_a_worker_serves_jobs_until_its_pipe_closes():
    import multiprocessing
    import pickle
    import threading

    from sandlab.lab._exec.processes import _serve
    from sandlab.lab._store.codec import decode

    mine, theirs = multiprocessing.Pipe()
    worker = threading.Thread(target=_serve, args=(theirs,))
    worker.start()
    assert mine.recv_bytes() == b""  # it has started
    mine.send_bytes(pickle.dumps(task(average, Toy(4))))
    assert decode(pickle.loads(mine.recv_bytes()).payload)["mean"] == average(Toy(4))["mean"]
    mine.send_bytes(b"nonsense")
    assert pickle.loads(mine.recv_bytes()).kind == "UnpicklingError"
    mine.close()
    worker.join(timeout=10)
    assert not worker.is_alive()


def test_a_worker_killed_while_idle_is_replaced():
    workers = Processes(1)
    try:
        for seed in (0, 1):
            workers.submit(task(average, Toy(seed)))
            outcomes = []
            while not outcomes:
                outcomes = workers.collect(0.5)
            assert outcomes[0][1].seconds >= 0
            workers._workers[0].process.kill()
            workers._workers[0].process.join()
    finally:
        workers.close()


def test_what_runs_on_a_node_unpacks_the_task_or_says_why_not(monkeypatch):
    import pickle

    from sandlab.lab._exec.cluster import _compute, _knock

    done = _compute(pickle.dumps(task(average, Toy(0))), [*sys.path, "/no/such/folder"])
    assert done.seconds >= 0
    assert "/no/such/folder" not in sys.path
    assert "install the job's module" in _compute(b"nonsense", []).message
    monkeypatch.setattr("ray._private.utils.read_ray_address", lambda: "")
    with pytest.raises(BadInput, match="no Ray cluster runs on this machine"):
        _knock("auto")
    with pytest.raises(BadInput, match="address like"):
        _knock("ray://somewhere")


def test_a_job_runs_with_as_many_torch_threads_as_it_asks_for_cores(monkeypatch):
    import torch

    from sandlab.lab._exec.jobs import execute
    from sandlab.lab._store.codec import decode

    before = torch.get_num_threads()
    monkeypatch.setattr(toys.threads, "resources", {"cpus": 3}, raising=False)
    done = execute(task(toys.threads, Toy(0)))
    assert decode(done.payload) == 3
    assert torch.get_num_threads() == before
    assert Resources.of(average, Toy(0)) == Resources(1, 0, 0)
    assert Resources.of(average, Toy(0, device="cuda")) == Resources(1, 1, 0)
    monkeypatch.setattr(toys.threads, "resources", {"cores": 3})
    with pytest.raises(BadInput, match="cpus, gpus and memory"):
        Resources.of(toys.threads, Toy(0))


def test_the_report_is_a_site_that_needs_no_network(tmp_path):
    sl.run(uniform, store=tmp_path / "runs")
    sl.run(uniform, "full", store=tmp_path / "runs", settings={"size": 500})
    index = write_site(Store(tmp_path / "runs"), tmp_path / "report")
    text = index.read_text()
    assert "✓ holds" in text and "toy/uniform/quick.html" in text and "toy/uniform/custom.html" in text
    page = (tmp_path / "report" / "toy" / "uniform" / "quick.html").read_text()
    for words in (
        "The mean is one half",
        "data:image/svg+xml",
        "sandlab run toy/uniform",
        "Configuration",
        "torch",
        "E[U] = 1/2",
        "1/2",
    ):
        assert words in page
    assert 'href="../../index.html"' in page
    link = 'href="http://127.0.0.1:8000/#/claims?words=toy%2Funiform."'  # followed only when somebody clicks it
    assert page.count(link) == 1
    assert "http" not in page.replace(link, "").replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    ).replace("https://matplotlib.org", "")
    assert _unbalanced(text) == []
    assert _unbalanced(page) == []
    with pytest.raises(BadInput, match="no finished run"):
        write_site(Store(tmp_path / "empty"), tmp_path / "report")


def _unbalanced(text: str) -> list[str]:
    """Tags that are opened and not closed, or closed and not opened."""
    from html.parser import HTMLParser

    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []
            self.wrong: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "img"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if not self.open or self.open.pop() != tag:
                self.wrong.append(tag)

    reader = Reader()
    reader.feed(text)
    return reader.wrong + reader.open


def test_a_report_shows_itself_in_a_notebook(tmp_path):
    text = sl.run(uniform, store=tmp_path)._repr_html_()
    assert "data:image/svg+xml" in text and "✓ holds" in text
    assert _unbalanced(text) == []


def test_text_in_the_report_cannot_become_markup():
    from sandlab.lab._report.html import element, prose, table

    assert element("p", "<script>", title='"') == '<p title="&quot;">&lt;script&gt;</p>'
    assert "<script>" not in table(["a"], [["<script>"]])
    assert prose("**a** `b<c`\n\n    code <d>") == (
        "<p><strong>a</strong> <code>b&lt;c</code></p><pre>    code &lt;d&gt;</pre>"
    )


def test_publishing_copies_the_last_run_and_drops_figures_no_longer_drawn(tmp_path):
    report = sl.run(uniform, store=tmp_path / "runs")
    (folder,) = publish_latest(Store(tmp_path / "runs"), "toy/uniform", tmp_path / "docs")
    assert folder == tmp_path / "docs" / "toy" / "uniform" / "quick"
    assert json.loads((folder / "findings.json").read_text()) == json.loads((report.path / "findings.json").read_text())
    assert (folder / "means.svg").read_bytes() == report.figures["means"].read_bytes()
    (folder / "old.svg").write_text("")
    publish_latest(Store(tmp_path / "runs"), "toy/uniform", tmp_path / "docs")
    assert sorted(path.name for path in folder.iterdir()) == [
        "environment.json",
        "findings.json",
        "means.svg",
        "run.json",
        "tables.json",
    ]
    assert publish_latest(Store(tmp_path / "runs"), "toy/other", tmp_path / "docs") == []
    assert [entry.verdict for entry in read_ledger(tmp_path / "docs" / "ledger.jsonl")] == ["holds", "fails"]
    sl.run(uniform, store=tmp_path / "runs", seeds=3)
    assert len(publish_latest(Store(tmp_path / "runs"), "toy/uniform", tmp_path / "docs")) == 1  # not the custom run
    assert len(read_ledger(tmp_path / "docs" / "ledger.jsonl", "toy/uniform.mean")) == 1


def test_every_json_reader_understands_what_is_not_finite():
    import numpy as np

    value = plain({"a": float("inf"), 1: (float("nan"), np.float64(2)), "b": np.arange(2), "c": Store})
    assert value["a"] == "inf" and value["1"] == ["nan", 2.0] and value["b"] == [0, 1]
    json.loads(json.dumps(value), parse_constant=pytest.fail)


def test_the_progress_of_each_map_is_told_on_one_bar(capsys):
    progress = Progress("training", 4, done=1, cached=1, running=2, status={"nodes": 2})
    with ProgressBar("a/study", 0, unit="jobs", patience=0.0, interval=0.0) as bar:
        show = on_bar(bar, "a/study")
        show(progress)
        show(Progress("decoding", 3))
    first, second = capsys.readouterr().err.splitlines()
    assert first == "a/study · training: 1/4 jobs  2 nodes, 1 from the store, 2 running"
    assert second == "a/study · decoding: 0/3 jobs"
    assert str(progress) == "training: 1/4 jobs (2 nodes, 1 from the store, 2 running)"


def test_the_environment_names_machine_and_packages(monkeypatch):
    about = environment()
    assert about["cores"] >= 1 and about["processor"] and about["packages"]["numpy"]
    import torch

    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "A fast one")
    assert machine("cuda")["accelerator"] == "A fast one"
