"""Long work that a page starts: runs of studies and trainings, each a process of its own that can be stopped."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandlab.errors import BadInput

__all__ = ["Job", "Jobs"]

_MOST_LINES, _MOST_WAITING = 4000, 50


@dataclass
class Job:
    """One process: what it is, what it said so far, how it ended."""

    number: int
    kind: str
    title: str
    words: list[str]
    state: str = "waiting"
    lines: list[Any] = field(default_factory=list)
    process: asyncio.subprocess.Process | None = None

    def facts(self, since: int = 0) -> dict[str, Any]:
        about = {"number": self.number, "kind": self.kind, "title": self.title, "state": self.state}
        return {**about, "lines": self.lines[since:], "next": len(self.lines)}


class Jobs:
    """At most `together` at once, the others wait in order."""

    def __init__(self, store: Path | None, together: int = 2) -> None:
        self.store, self.known = store, {}  # type: ignore[var-annotated]
        self._numbers, self._room = itertools.count(1), asyncio.Semaphore(together)
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, kind: str, title: str, words: list[str]) -> Job:
        waiting = sum(job.state == "waiting" for job in self.known.values())
        if waiting >= _MOST_WAITING:
            raise BadInput(f"{waiting} jobs wait already: stop some of them first")
        job = Job(next(self._numbers), kind, title, words)
        self.known[job.number] = job
        task = asyncio.create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def get(self, number: int) -> Job:
        if number not in self.known:
            raise BadInput(f"there is no job {number}")
        job: Job = self.known[number]
        return job

    def stop(self, number: int) -> Job:
        job = self.get(number)
        if job.process is not None and job.process.returncode is None:
            job.process.terminate()
        if job.state in ("waiting", "running"):
            job.state = "stopped"
        return job

    def close(self) -> None:
        for number in list(self.known):
            self.stop(number)

    async def _run(self, job: Job) -> None:
        async with self._room:
            if job.state != "waiting":
                return
            job.state = "running"
            environment = {**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
            if self.store is not None:
                environment["SANDLAB_STORE"] = str(self.store)
            job.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", *job.words, env=environment,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, limit=2**22,
            )  # fmt: skip
            assert job.process.stdout is not None
            async for line in job.process.stdout:
                self._note(job, line.decode(errors="replace").rstrip())
            code = await job.process.wait()
            if job.state == "running":
                job.state = "done" if code in (0, 1) else "failed"

    def _note(self, job: Job, line: str) -> None:
        if len(job.lines) < _MOST_LINES and line:
            try:
                job.lines.append(json.loads(line) if line.startswith("{") else {"text": line[:2000]})
            except json.JSONDecodeError:
                job.lines.append({"text": line[:2000]})
