"""Where jobs run: one interface, and the simplest of its kinds. `processes` and `ray` have files of their own."""

from __future__ import annotations

import os
from typing import Protocol

from sandlab.errors import BadInput, nearest
from sandlab.lab._exec.jobs import Done, Failed, Task, execute

__all__ = ["Executor", "Local", "executor"]

Outcome = tuple[Task, Done | Failed]


class Executor(Protocol):
    """Takes tasks, gives back outcomes in the order they finish. The caller keeps at most `slots` in flight.

    here_when_alone  a single task is better run by the caller itself than sent away
    gpus             GPUs that jobs get for themselves, over which the seeds of an experiment are spread; 1 where all
                     jobs share the device that they name
    """

    name: str
    here_when_alone: bool

    @property
    def slots(self) -> int: ...

    @property
    def gpus(self) -> int: ...

    def submit(self, task: Task) -> None: ...

    def collect(self, timeout: float) -> list[Outcome]:
        """Outcomes that are ready; waits up to `timeout` seconds for the first."""
        ...

    def status(self) -> dict[str, int]:
        """Numbers for the progress line, such as the nodes of a cluster."""
        ...

    def abandon(self) -> None:
        """Drop everything in flight."""
        ...

    def close(self) -> None: ...


class Local:
    """One job after another, in this process."""

    name = "local"
    slots = 1
    gpus = 1
    here_when_alone = False

    def __init__(self) -> None:
        self._waiting: list[Task] = []

    def submit(self, task: Task) -> None:
        self._waiting.append(task)

    def collect(self, timeout: float) -> list[Outcome]:
        return [(task, execute(task)) for task in [self._waiting.pop(0)]] if self._waiting else []

    def status(self) -> dict[str, int]:
        return {}

    def abandon(self) -> None:
        self._waiting.clear()

    def close(self) -> None:
        self.abandon()


def executor(on: str | Executor, workers: int | None = None) -> Executor:
    """The executor called `on`: "local", "processes" (or "processes:4"), "ray", "ray://host:port"."""
    if not isinstance(on, str):
        return on
    kind, _, detail = on.partition(":")
    if on == "local":
        return Local()
    if kind == "processes":
        from sandlab.lab._exec.processes import Processes

        most = max(64, 4 * (os.cpu_count() or 2))
        if detail and not (detail.isascii() and detail.isdigit() and 1 <= int(detail) <= most):
            raise BadInput(f"on must be like 'processes:4', with 1 to {most} processes, got {on!r}")
        return Processes(workers or int(detail or 0) or max(2, min(16, os.cpu_count() or 2)))
    if kind == "ray":
        from sandlab.lab._exec.cluster import Cluster

        return Cluster(on if detail else None)
    hint = nearest(kind, ("local", "processes", "ray"))
    raise BadInput(
        f"on must be local, processes[:N], ray or ray://host:port, got {on!r}" + (f": {hint}" if hint else "")
    )
