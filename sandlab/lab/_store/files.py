"""Writing to disk so that nothing is ever half there: temporary file, fsync, rename; and file locks."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["FileLock", "StoreFull", "checksum", "refuse_when_full", "write_atomic"]

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class StoreFull(RuntimeError):
    """The disk has no room for a result. Everything written before is intact."""


def checksum(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


@contextmanager
def refuse_when_full(path: Path) -> Iterator[None]:
    """Turn the system's ways of saying "no space left" into one sentence."""
    try:
        yield
    except OSError as problem:
        if problem.errno in _FULL:
            raise StoreFull(
                f"no room to write {path}: {os.strerror(problem.errno or 0)}. What was finished before is kept; "
                "free some space and give the same command again"
            ) from problem
        raise


def write_atomic(path: Path, data: bytes) -> None:
    """Put `data` at `path`: a reader sees the old file or the new one, never a part, even after a power cut."""
    with refuse_when_full(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:60]}.{uuid.uuid4().hex[:12]}.part")
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class FileLock:
    """A lock on one piece of work, by file. The system drops it when its holder dies, however it dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def acquire(self, *, wait: bool = False) -> bool:
        """Take the lock; without `wait`, say at once whether somebody else holds it."""
        with refuse_when_full(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            while True:
                handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                except BlockingIOError:
                    os.close(handle)
                    return False
                if self._current(handle):
                    self._handle = handle
                    return True
                os.close(handle)

    def release(self) -> None:
        """Give the lock back and remove its file."""
        if self._handle is None:
            return
        self.path.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = None

    def _current(self, handle: int) -> bool:
        """Whether the locked file is still the one at the path: its last holder removes it while others wait."""
        try:
            return os.fstat(handle).st_ino == os.stat(self.path).st_ino
        except FileNotFoundError:
            return False

    def __enter__(self) -> FileLock:
        self.acquire(wait=True)
        return self

    def __exit__(self, *_problem: object) -> None:
        self.release()
