"""Progress of anything that takes longer than two seconds: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from typing import Any

__all__ = ["Progress"]


def _inside_worker() -> bool:
    return multiprocessing.parent_process() is not None or "RAY_JOB_ID" in os.environ or "SANDLAB_WORKER" in os.environ


class Progress:
    """Tell how far a loop has come.

    show      True: always; False: never; None: unless this is a worker process, whose parent reports for it
    patience  seconds before anything is shown; between: seconds from line to line where there is no terminal
    """

    def __init__(
        self,
        total: int,
        label: str,
        *,
        show: bool | None = None,
        patience: float = 2.0,
        between: float = 10.0,
        unit: str = "steps",
    ) -> None:
        self.unit = unit
        self.total, self.label, self.patience, self.between = total, label, patience, between
        self.show = not _inside_worker() if show is None else show
        self.begun = time.monotonic()
        self.next_line = self.begun + patience
        self.bar: Any = None

    def __call__(self, done: int, note: str = "") -> None:
        if not self.show:
            return
        now = time.monotonic()
        if now < self.next_line:
            return
        if sys.stderr.isatty():
            self._draw(done, note)
            self.next_line = now + 0.1
        else:
            rate = done / max(now - self.begun, 1e-9)
            text = f"{self.label}: {done}/{self.total} {self.unit}"
            if done:
                text += f", {rate:.4g}/s, {(self.total - done) / rate:.0f} s left"
            print(f"{text}  {note}".rstrip(), file=sys.stderr, flush=True)
            self.next_line = now + self.between

    def _draw(self, done: int, note: str) -> None:
        if self.bar is None:
            from rich.console import Console
            from rich.errors import LiveError
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = RichProgress(*columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True))
            self.bar.add_task(self.label, total=self.total, note="")
            try:
                self.bar.start()
            except LiveError:  # somebody else's bar is on the screen and tells the greater story
                self.bar, self.show = None, False
                return
        self.bar.update(self.bar.tasks[0].id, completed=done, note=note)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.update(self.bar.tasks[0].id, completed=self.total)
            self.bar.stop()
            self.bar = None
