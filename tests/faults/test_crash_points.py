"""Every call that changes the store as a crash point: killed there, out of space there, or with an I/O error there.

What SQLite's own tests do: count the calls of a whole run, then break each of them in turn and look at what is left. A
part of the points in `make test`, all of them in `make test-full`.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FAULTS = {"kill": 0, "ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EROFS": errno.EROFS}
DOCUMENTED = {0, 1, 3}  # 1: the toy's second claim is meant to fail, and is expected to


class Breaker:
    """Sends faults to a warm laboratory and checks what each leaves behind."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        library = folder / "preload.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-o", library, HERE / "preload.c", "-ldl"], check=True)
        environment = {**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        words = [sys.executable, str(HERE / "crash_server.py")]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(words, env=environment, **pipes)

    def ask(self, at: int, error: int = 0, lasting: bool = False) -> dict[str, Any]:
        self.count += 1
        store, log = self.folder / f"store-{self.count}", self.folder / f"{self.count}.log"
        log.write_text("")
        request = {"store": str(store), "at": at, "error": error, "lasting": lasting, "log": str(log)}
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        shutil.rmtree(store)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


@pytest.fixture(scope="module")
def breaker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Breaker]:
    if shutil.which("cc") is None or not sys.platform.startswith("linux"):
        pytest.skip("a C compiler and Linux are needed")
    made = Breaker(tmp_path_factory.mktemp("crash"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(breaker: Breaker) -> dict[str, Any]:
    """A run without a fault; `calls` says how many there are to break."""
    answer = breaker.ask(-1)
    assert answer["status"] == 0, answer
    answer["calls"] = int(answer["told"].rpartition("calls ")[2])
    return answer


def check(answer: dict[str, Any], whole: dict[str, Any], killed: bool) -> None:
    assert "error" not in answer, answer["error"]
    assert "Traceback" not in answer["told"], answer["told"]
    assert answer["status"] == -9 if killed else answer["status"] in DOCUMENTED, answer
    assert answer["metrics"] == whole["metrics"] and answer["figures"] == whole["figures"]
    assert answer["runs"] == 1 and answer["intact"], answer
    assert answer["index"] == whole["index"], answer
    assert answer["status"] != 0 or answer["reused"], answer  # a run that ends well is there
    # Nothing finished is lost but the one that was being written, and nothing that was stored is computed twice.
    assert answer["kept"] >= answer["finished"] - 1, answer
    assert answer["reused"] or answer["jobs"]["cached"] == answer["kept"], answer
    assert len(answer["starts"]) <= 6 + (6 - answer["kept"]), answer


@pytest.mark.parametrize(
    "fault", ["kill", "ENOSPC", *(pytest.param(each, marks=pytest.mark.slow) for each in ("EIO", "EROFS"))]
)
def test_some_points(breaker: Breaker, whole: dict[str, Any], fault: str) -> None:
    step = max(1, whole["calls"] // 5)
    for at in range(list(FAULTS).index(fault), whole["calls"], step):
        check(breaker.ask(at, FAULTS[fault]), whole, killed=fault == "kill")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "lasting"),
    [("kill", False), ("ENOSPC", False), ("EIO", False), ("EROFS", False), ("ENOSPC", True), ("EIO", True)],
)
def test_every_point(breaker: Breaker, whole: dict[str, Any], fault: str, lasting: bool) -> None:
    for at in range(0, whole["calls"], 3 if lasting else 1):
        check(breaker.ask(at, FAULTS[fault], lasting), whole, killed=fault == "kill")
    print(f"{whole['calls']} points, {fault}, {'lasting' if lasting else 'once'}")
