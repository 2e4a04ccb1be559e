"""Where a training that runs inside a job keeps its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

__all__ = ["scratch_file", "scratch_folder"]

_scratch: ContextVar[Path | None] = ContextVar("scratch", default=None)


@contextmanager
def scratch_folder(folder: Path | None) -> Iterator[None]:
    """Trainings inside the block keep their checkpoints in `folder`: they survive the process that runs them."""
    token = _scratch.set(folder)
    try:
        yield
    finally:
        _scratch.reset(token)


def scratch_file(name: str) -> Path | None:
    """Where a training inside a job keeps its checkpoint, if anywhere."""
    folder = _scratch.get()
    return None if folder is None else folder / f"{name}.safetensors"
