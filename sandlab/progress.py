"""Progress of anything that takes longer than two seconds: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["ProgressBar"]

_screen: Progress | None = None  # all bars of the process are lines of one display


class ProgressBar:
    """How far a piece of work has come.

    show      True: always; False: never; None: unless this is a worker process, whose parent reports for it
    patience  seconds before anything is shown; interval: seconds from line to line where there is no terminal
    """

    def __init__(
        self,
        label: str,
        total: int,
        *,
        unit: str = "steps",
        show: bool | None = None,
        patience: float = 2.0,
        interval: float = 10.0,
    ) -> None:
        self.unit, self.patience, self.interval = unit, patience, interval
        self.show = not _inside_worker() if show is None else show
        self.task: TaskID | None = None
        self.begin(label, total)

    def begin(self, label: str, total: int) -> None:
        """Go on to another piece of work."""
        self.label, self.total = label, total
        self.first: tuple[int, float] | None = None
        self.due = time.monotonic() + (self.patience if self.task is None else 0.0)

    def update(self, done: int, note: str = "") -> None:
        """Say how much is done; most calls only read the clock."""
        if not self.show:
            return
        now = time.monotonic()
        if self.first is None:
            self.first = done, now
        if now < self.due:
            return
        if sys.stderr.isatty():
            self._draw(done, note)
            self.due = now + 0.1
        else:
            print(f"{self._line(done, now, *self.first)}  {note}".rstrip(), file=sys.stderr, flush=True)
            self.due = now + self.interval

    def _line(self, done: int, now: float, first: int, begun: float) -> str:
        """What is done, how fast and how long it will take; what was done before the first update took no time."""
        text = f"{self.label}: {done}/{self.total} {self.unit}"
        rate = (done - first) / max(now - begun, 1e-9)
        return f"{text}, {rate:.4g}/s, {(self.total - done) / rate:.0f} s left" if rate else text

    def _draw(self, done: int, note: str) -> None:
        global _screen
        if _screen is None:
            _screen = _open_screen()
        if self.task is None:
            self.task = _screen.add_task(self.label, total=self.total, note="")
        _screen.update(self.task, description=self.label, completed=done, total=self.total, note=note)

    def close(self) -> None:
        """Take the bar off the screen."""
        global _screen
        if self.task is None or _screen is None:
            return
        _screen.remove_task(self.task)
        self.task = None
        if not _screen.tasks:
            _screen.stop()
            _screen = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _inside_worker() -> bool:
    return multiprocessing.parent_process() is not None or "RAY_JOB_ID" in os.environ or "SANDLAB_WORKER" in os.environ


def _open_screen() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    screen = Progress(*columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True), transient=True)
    screen.start()
    return screen
