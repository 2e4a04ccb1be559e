"""Studies on Ray: the same digits, whatever happens to nodes and drivers. Two raylets stand for two machines."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections import Counter
from typing import Any

import pytest
import toys
from toys import average
from toys import study as uniform

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.lab._exec.cluster import Cluster
from sandlab.lab._exec.jobs import Resources
from sandlab.lab._store.store import Store

pytestmark = pytest.mark.cluster


def cluster(**head: Any) -> Any:
    """A head with one core. Ray gives a node half a minute to appear: a busy machine gets another try."""
    from ray.cluster_utils import Cluster as Raylets

    arguments = {"num_cpus": 1, "include_dashboard": False, **head}
    for left in (2, 1, 0):
        try:
            return Raylets(initialize_head=True, head_node_args=arguments)
        except Exception:
            if left == 0:
                raise
    raise AssertionError


@pytest.fixture
def two_nodes(drive, monkeypatch):
    """Two raylets and the second of them; their workers write to the drive's log."""
    monkeypatch.setenv(toys.LOG, str(drive.log))
    raylets = cluster()
    second = raylets.add_node(num_cpus=1)
    try:
        yield raylets, second
    finally:
        raylets.shutdown()


@pytest.mark.slow
def test_a_study_outlives_a_killed_node_and_a_killed_driver(drive, two_nodes, tmp_path):
    raylets, second = two_nodes
    here = f"ray:{raylets.address}"
    # Jobs much longer than what lies between them, so that the node is in the middle of one when it is lost.
    settings = {"seeds": 20, "pause": 1.5}
    process = drive.start(here, **settings)
    drive.wait_for(lambda: len(Store(drive.store).cache.stored()) >= 3, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = len(Store(drive.store).cache.stored())
    assert 3 <= kept < 20

    process = drive.at_the_terminal(here, **settings)
    before = len(drive.log_lines())
    drive.wait_for(lambda: _is_busy(second.node_id, drive.log_lines()[before:]), process)
    raylets.remove_node(second, allow_graceful=False)
    out, told = process.communicate(timeout=400)
    assert process.returncode == 0, told
    (answer,) = json.loads(out)  # D16: a node that dies leaves stdout to the report

    assert answer["jobs"]["jobs"] == 20
    assert answer["jobs"]["retried"] >= 1  # what the lost node was computing
    assert answer["jobs"]["cached"] >= kept
    assert answer["jobs"]["cached"] + answer["jobs"]["computed"] == 20
    assert len(Store(drive.store).cache.stored()) == 20
    rows = Store(drive.store).index.rows("select key from jobs")
    assert max(Counter(row["key"] for row in rows).values()) == 1
    whole = sl.run(uniform, store=tmp_path / "other", settings=settings | {"pause": 0.0})
    assert answer["findings"] == json.loads(json.dumps([finding.as_dict() for finding in whole.findings]))


def _is_busy(node: str, lines: list[str]) -> bool:
    """Whether a node has finished a job and is in the middle of another."""
    words = [line.split()[0] for line in lines if line.endswith(f" {node}")]
    return words.count("start") > words.count("done") >= 1


def test_an_embedded_ray_finds_the_same_and_names_errors_and_impossible_asked(tmp_path, monkeypatch):
    seen = []
    ray = Cluster()
    try:
        report = sl.run(uniform, store=tmp_path / "a", on=ray, progress=lambda p: seen.append(str(p)))
        assert report.findings == sl.run(uniform, store=tmp_path / "b").findings
        assert any("1 nodes" in line and "running" in line for line in seen)
        with pytest.raises(RuntimeError, match=r"toys:average\(Toy\(seed=3.*the third one breaks"):
            sl.run(uniform, store=tmp_path / "a", on=ray, settings={"trouble": "raise"})
        monkeypatch.setattr(average, "resources", {"cpus": 10_000}, raising=False)
        with pytest.raises(BadInput, match="no node of the cluster has 10000 CPUs"):
            sl.run(uniform, store=tmp_path / "a", on=ray, settings={"size": 77})
    finally:
        ray.close()


@pytest.mark.slow
def test_a_cluster_is_joined_through_its_client_port(drive, tmp_path):
    """D4."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    raylets = cluster(ray_client_server_port=port)
    try:
        answer = drive.finish(drive.start(f"ray://127.0.0.1:{port}"))
    finally:
        raylets.shutdown()
    assert answer["metrics"] == sl.run(uniform, store=tmp_path / "other").metrics


def test_a_cluster_that_does_not_answer_is_bad_input():
    with pytest.raises(BadInput, match="no Ray cluster answers at ray:127"):
        Cluster("ray:127.0.0.1:1")


@pytest.mark.parametrize("remembered", ["127.0.0.1:1", ""])
def test_a_dead_cluster_that_ray_remembers_is_not_waited_for(remembered, monkeypatch):
    """Ray keeps the address of the last head in a file, also after the head was killed."""
    monkeypatch.setattr("ray._private.utils.read_ray_address", lambda: remembered)
    with pytest.raises(BadInput, match=r"no Ray cluster (answers at ray:auto|runs on this machine)"):
        Cluster("ray:auto")


def test_needs_default_to_one_core_and_to_a_gpu_only_on_cuda():
    from toys import Toy

    assert Resources.of(average, Toy(0)) == Resources(1, 0, 0)
    assert Resources.of(average, Toy(0, device="cuda")) == Resources(1, 1, 0)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["silent", "another"])
def test_somebody_else_at_the_address_is_told_within_seconds(answer: bytes) -> None:
    """D18."""
    import threading
    import time

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            line, _ = server.accept()
            if answer:
                line.sendall(answer)
            time.sleep(8)
            line.close()

        threading.Thread(target=serve, daemon=True).start()
        start = time.monotonic()
        with pytest.raises(BadInput, match="is not a Ray cluster"):
            Cluster(f"ray:127.0.0.1:{server.getsockname()[1]}")
        assert time.monotonic() - start < 15


@pytest.mark.slow  # of a head that only seems lost: the next
def test_a_lost_head_is_a_sentence_within_half_a_minute(drive, tmp_path):
    """D18: exit code 3, what was finished is kept, and the way to go on is named."""
    import re
    import subprocess
    import sys

    raylets = cluster()
    try:
        code = (
            "import sys, toys\nfrom sandlab.cli import _explain\nimport sandlab as sl\n"
            "try:\n    sl.run(toys.study, on=sys.argv[1], store=sys.argv[2], settings={'seeds': 40, 'pause': 1.0})\n"
            "except Exception as problem:\n    sys.exit(_explain(problem, []))\n"
        )
        here = os.path.dirname(toys.__file__)
        words = [sys.executable, "-c", code, f"ray:{raylets.address}", str(drive.store)]
        environment = {**os.environ, "PYTHONPATH": here, toys.LOG: str(drive.log)}
        process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
        drive.wait_for(lambda: len(Store(drive.store).cache.stored()) >= 2, process)
        raylets.head_node.kill_gcs_server()
        _, told = process.communicate(timeout=240)
    finally:
        raylets.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
    assert process.returncode == 3, told  # Ray itself would abort the process after a minute
    assert int(re.search(r"for (\d+) seconds", told)[1]) < 30
    assert "no longer answers" in told and "give the same command" in told and "Traceback" not in told
    assert len(Store(drive.store).cache.stored()) >= 2


def test_a_silent_head_keeps_nobody_waiting(monkeypatch):
    """D18: a question to a lost head waits for a minute, and Ray is asked nothing more once the loss is told."""
    import threading
    import time
    from types import SimpleNamespace

    from sandlab.lab._exec import cluster as module

    silence = threading.Event()
    lost = object.__new__(Cluster)
    lost.ray = SimpleNamespace(nodes=lambda: silence.wait(60) or [])
    lost._nodes, lost._seen, lost._asking = [{"Alive": True, "Resources": {"CPU": 2}}], -1e9, None
    lost._lost, lost._mine, lost._in_flight = False, True, {object(): None}
    lost._answered, lost._head = time.monotonic() - 20, "127.0.0.1:1"
    monkeypatch.setattr(module, "_FRESH_FOR", 0.01)
    assert lost.status() == {"nodes": 1} and lost.slots == 4
    with pytest.raises(module.ClusterLost, match=r"no longer answers .* for \d+ seconds.*give the same command"):
        lost.collect(0.1)
    lost.close()
    silence.set()


def test_a_node_with_other_libraries_or_sources_is_named():
    """D20."""
    import dataclasses

    from toys import Toy

    from sandlab.lab._exec.jobs import execute_elsewhere, task

    whole = task(average, Toy(0))
    older = execute_elsewhere(dataclasses.replace(whole, libraries={"torch": "1.0", "numpy": "1.0"}))
    assert older.kind == "LibrariesDiffer" and "the study began with torch 1.0" in older.message
    edited = execute_elsewhere(dataclasses.replace(whole, parts={**whole.parts, average.__module__: "0" * 64}))
    assert edited.kind == "SourcesDiffer" and "on the node" in edited.message and "install the same" in edited.message


def test_versions_of_the_libraries_are_part_of_a_result_s_key(monkeypatch):
    """D20."""
    from toys import Toy

    from sandlab.lab._exec import jobs

    key = jobs.task(average, Toy(0)).key
    monkeypatch.setattr(jobs, "library_versions", lambda: {"torch": "1.0", "numpy": "1.0"})
    assert jobs.task(average, Toy(0)).key != key
