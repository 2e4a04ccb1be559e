"""Processes of their own for the laboratory's fault tests, and a disk small enough to fill."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # workers import the toys by name

import toys  # noqa: E402


@dataclass
class Disk:
    """A folder with little room, and a way to give it more."""

    folder: Path
    limit: Callable[[], None] | None
    enlarge: Callable[[], object]


class Drive:
    """Starts `drive.py`; every job it computes leaves its lines in `log`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "jobs.log"
        self.store = folder / "runs"

    def start(
        self, on: str = "local", store: Path | None = None, limit: Any = None, **settings: Any
    ) -> subprocess.Popen:
        return self._run([str(HERE / "drive.py"), str(store or self.store), on, json.dumps(settings)], limit)

    def at_the_terminal(self, on: str, **settings: Any) -> subprocess.Popen:
        """`sandlab run toy/uniform --json`."""
        words = ["run", "toy/uniform", "--on", on, "--store", str(self.store), "--json"]
        words += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        return self._run(["-c", "import sys, toys; from sandlab.cli import main; main(sys.argv[1:])", *words])

    def _run(self, words: list[str], limit: Any = None) -> subprocess.Popen:
        paths = os.pathsep.join([str(HERE), str(HERE.parents[1])])
        environment = {**os.environ, "PYTHONPATH": paths, toys.LOG: str(self.log), "OMP_NUM_THREADS": "1"}
        environment["TOY_MARK"] = str(self.folder / "mark")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
        return subprocess.Popen([sys.executable, *words], env=environment, preexec_fn=limit, **pipes)

    def finish(self, process: subprocess.Popen) -> dict[str, Any]:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        return json.loads(out.splitlines()[-1])

    def lines(self, word: str) -> list[int]:
        """Seeds of the jobs that left a line with this word."""
        return [int(line.split()[1]) for line in self.log_lines() if line.startswith(word)]

    def log_lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def wait_for(self, condition: Callable[[], bool], process: subprocess.Popen) -> None:
        deadline = time.monotonic() + 600
        while not condition():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    return Drive(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """A file system of one megabyte where mounting is allowed; elsewhere a limit below one result's size."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True).returncode == 0
    try:
        if mounted:
            bigger = ["mount", "-o", "remount,size=64m", str(folder)]
            yield Disk(folder, None, lambda: subprocess.run(bigger, check=True))
        else:
            yield Disk(folder, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000)), lambda: None)
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)
