"""What a job lends to the trainings inside it: a folder for checkpoints, and the moment at which they must stop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

__all__ = ["OutOfTime", "out_of_time", "scratch_file", "scratch_folder"]

_scratch: ContextVar[Path | None] = ContextVar("scratch", default=None)
_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class OutOfTime(Exception):
    """The time given to a run is over; what was done is kept."""


@contextmanager
def scratch_folder(folder: Path | None, seconds: float | None = None) -> Iterator[None]:
    """Trainings inside the block keep their checkpoints in `folder`: they survive the process that runs them.

    seconds   after so many a training saves itself and raises `OutOfTime`; None: it may take as long as it needs
    """
    tokens = _scratch.set(folder), _deadline.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _scratch.reset(tokens[0])
        _deadline.reset(tokens[1])


def scratch_file(name: str) -> Path | None:
    """Where a training inside a job keeps its checkpoint, if anywhere."""
    folder = _scratch.get()
    return None if folder is None else folder / f"{name}.safetensors"


def out_of_time() -> bool:
    """Whether the time given to the job is over."""
    deadline = _deadline.get()
    return deadline is not None and time.monotonic() >= deadline
