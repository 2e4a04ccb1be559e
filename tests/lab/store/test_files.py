"""Files are whole or not there; a claim has one holder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from sandlab.lab._store.files import FileLock, StoreFull, write_atomic
from sandlab.lab._store.index import Index


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    code = (
        "import resource, pathlib, sys\n"
        "from sandlab.lab._store.files import write_atomic\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "write_atomic(pathlib.Path(sys.argv[1]), b'n' * 2000)\n"
    )
    path = tmp_path / "file"
    write_atomic(path, b"old")
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert "StoreFull: no room to write" in done.stderr
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_files_have_the_permissions_of_any_other_file(tmp_path):
    write_atomic(tmp_path / "ours", b"")
    (tmp_path / "theirs").write_bytes(b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "theirs").stat().st_mode


def test_other_trouble_with_the_disk_keeps_its_own_name(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileExistsError):
        write_atomic(tmp_path / "file" / "below", b"x")


def test_readers_never_see_a_part_of_a_file(tmp_path):
    path = tmp_path / "file"
    versions = [bytes([value]) * 100_000 for value in range(2)]
    write_atomic(path, versions[0])
    stop = threading.Event()

    def write() -> None:
        for turn in range(60):
            write_atomic(path, versions[turn % 2])
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not stop.is_set():
        assert path.read_bytes() in versions
    writer.join()


def test_a_claim_has_one_holder_and_is_free_when_released(tmp_path):
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire()
    assert not second.acquire()
    first.release()
    first.release()
    assert second.acquire()
    second.release()
    assert os.listdir(tmp_path) == []


def test_many_threads_never_hold_a_claim_together(tmp_path):
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        for _ in range(30):
            with FileLock(tmp_path / "lock"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_killed_holder_frees_its_claim(tmp_path):
    code = (
        "import sys, time, pathlib\n"
        "from sandlab.lab._store.files import FileLock\n"
        "FileLock(pathlib.Path(sys.argv[1])).acquire() and print('held', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [
        sys.executable,
        "-c",
        code.replace("FileLock(", "c = FileLock(").replace(".acquire() and", "; c.acquire() and"),
    ]
    holder = subprocess.Popen([*command, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    lock = FileLock(tmp_path / "lock")
    assert not lock.acquire()
    holder.kill()
    holder.wait()
    assert lock.acquire()
    lock.release()


def test_the_index_says_when_the_disk_is_full(tmp_path):
    index = Index(tmp_path / "index.sqlite")
    index.create()
    real = index._open

    from contextlib import contextmanager

    @contextmanager
    def small():
        with real() as connection:
            connection.execute("pragma max_page_count = 12")  # SQLite's own "database or disk is full"
            yield connection

    index._open = small  # type: ignore[method-assign]
    rows = [{"key": str(n), "job": "x" * 2000, "code": "", "seconds": 0, "bytes": 0, "created": 0} for n in range(100)]
    with pytest.raises(StoreFull, match=r"no room to write .*full"):
        index.add("jobs", *rows)
    index._open = real  # type: ignore[method-assign]
    assert index.rows("select * from jobs") == []


def test_processes_that_open_a_new_store_together_lose_no_row(tmp_path):
    code = (
        "import sys\n"
        "from sandlab.lab._store.store import Store\n"
        "store = Store.open(sys.argv[1])\n"
        "for number in range(20):\n"
        "    row = {'job': '', 'code': '', 'seconds': 0, 'bytes': 0, 'created': 0}\n"
        "    store.index.add('jobs', {'key': f'{sys.argv[2]}-{number}', **row})\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "runs"), str(each)]) for each in range(5)]
    assert [writer.wait() for writer in writers] == [0] * 5
    rows = Index(tmp_path / "runs" / "index.sqlite").rows("select key from jobs")
    assert {row["key"] for row in rows} == {f"{each}-{number}" for each in range(5) for number in range(20)}
