"""Long work that a page starts: runs of studies and trainings, each a process of its own that can be stopped."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path

from sandlab.atlas.bounded import SECONDS
from sandlab.errors import BadInput
from sandlab.lab._store.plain import Facts

__all__ = ["Job", "Jobs"]

_MOST_LINES, _MOST_WAITING, _MOST_KNOWN = 4000, 50, 200
_FORGOTTEN = 180.0  # seconds: a job that no page has asked about for so long is stopped
_LOOK = 5.0  # seconds between two looks for such jobs
_GRACE = 30.0  # seconds to write down what there is


@dataclass
class Job:
    """One process: what it is, what it said so far, how it ended."""

    number: int
    kind: str
    title: str
    words: list[str]
    folder: Path | None = None
    state: str = "waiting"
    lines: list[Facts] = field(default_factory=list)
    process: asyncio.subprocess.Process | None = None
    asked: float = field(default_factory=time.monotonic)
    kept: str = ""

    @property
    def alive(self) -> bool:
        """Not done: it waits, is being started, runs, or was told to end and still writes down what there is."""
        begun = self.process is not None and self.process.returncode is None
        return begun or self.state in ("waiting", "running")

    @property
    def saved(self) -> bool:
        return self.folder is not None and (self.folder / "about.json").is_file()

    def facts(self, since: int = 0) -> Facts:
        about = {"number": self.number, "kind": self.kind, "title": self.title, "state": self.state}
        more = {"alive": self.alive, "saved": self.saved, "kept": self.kept}
        return {**about, **more, "lines": self.lines[since:], "next": len(self.lines)}


class Jobs:
    """At most `together` at once, the others wait in order."""

    def __init__(self, store: Path | None, together: int = 2) -> None:
        self.store = store
        self.known: dict[int, Job] = {}
        self._numbers, self._room = itertools.count(1), asyncio.Semaphore(together)
        self._tasks: set[asyncio.Task[None]] = set()
        self._task(self._watch())

    def start(self, kind: str, title: str, words: list[str], folder: Path | None = None) -> Job:
        waiting = sum(job.state == "waiting" for job in self.known.values())
        if waiting >= _MOST_WAITING:
            raise BadInput(f"{waiting} jobs wait already: stop some of them first")
        job = Job(next(self._numbers), kind, title, words, folder)
        self.known[job.number] = job
        for old in [each for each in self.known.values() if not each.alive][: max(0, len(self.known) - _MOST_KNOWN)]:
            self._forget(old)
        self._task(self._run(job))
        return job

    def all(self) -> list[Job]:
        """Every job that is known; whoever asks is a page that is still there."""
        for job in self.known.values():
            job.asked = time.monotonic()
        return list(self.known.values())

    def get(self, number: int) -> Job:
        if number not in self.known:
            raise BadInput(f"there is no job {number}")
        self.known[number].asked = time.monotonic()
        return self.known[number]

    def stop(self, number: int) -> Job:
        job = self.get(number)
        if job.process is not None and job.process.returncode is None:
            job.process.terminate()
            self._task(self._end(job.process))
        if job.state in ("waiting", "running"):
            job.state = "stopped"
        return job

    def close(self) -> None:
        for job in self.known.values():
            if job.process is not None and job.process.returncode is None:
                job.process.kill()
            self._forget(job, known=False)
        for task in self._tasks:
            task.cancel()

    def _forget(self, job: Job, known: bool = True) -> None:
        if job.folder is not None and not job.kept:
            shutil.rmtree(job.folder, ignore_errors=True)
        if known:
            del self.known[job.number]

    def _task(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Kill what does not end by itself."""
        try:
            await asyncio.wait_for(process.wait(), _GRACE)
        except TimeoutError:
            process.kill()

    async def _watch(self) -> None:
        """Stop jobs whose page has gone."""
        while True:
            await asyncio.sleep(_LOOK)
            late = time.monotonic() - _FORGOTTEN
            for job in list(self.known.values()):
                if job.state in ("waiting", "running") and job.asked < late:
                    self.stop(job.number)

    async def _run(self, job: Job) -> None:
        async with self._room:
            if job.state != "waiting":
                return
            job.state = "running"
            try:
                code = await self._follow(job)
            except (OSError, ValueError) as problem:  # it cannot be started, or says more in a line than anyone reads
                code = -1
                self._note(job, f"ended: {problem}")
                if job.process is not None and job.process.returncode is None:
                    job.process.kill()
            if code == -signal.SIGXCPU:
                self._note(job, f"ended after {SECONDS // 3600} hours of processor time")
            if job.state == "running":
                job.state = "done" if code in (0, 1) else "failed"

    async def _follow(self, job: Job) -> int:
        """Run the process of a job to its end, noting what it says; its exit code."""
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
        if self.store is not None:
            environment["SANDLAB_STORE"] = str(self.store)
        job.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "sandlab.atlas.bounded", *job.words, env=environment,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, limit=2**22,
        )  # fmt: skip
        if job.state != "running":  # stopped while it started
            job.process.kill()
        assert job.process.stdout is not None
        async for line in job.process.stdout:
            self._note(job, line.decode(errors="replace").rstrip())
        return await job.process.wait()

    def _note(self, job: Job, line: str) -> None:
        if len(job.lines) >= _MOST_LINES or not line:
            return
        said = {"text": line[:2000]}
        if line.startswith("{"):
            with contextlib.suppress(json.JSONDecodeError):
                said = json.loads(line)
        if "attention" in said:  # the maps before are no longer looked at
            for earlier in job.lines:
                earlier.pop("attention", None)
        job.lines.append(said)
