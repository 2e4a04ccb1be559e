"""The store's files: written whole or not at all (`sandlab.files`), and locked by file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
from pathlib import Path

from sandlab.files import StoreFull, checksum, refuse_when_full, sync_folder, write_atomic

__all__ = ["FileLock", "StoreFull", "checksum", "refuse_when_full", "sync_folder", "write_atomic"]


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
                    self._sign(handle)
                    return True
                os.close(handle)

    def holder(self) -> str:
        """Who holds the lock, in words, and whether that process is stopped; empty when it cannot be told."""
        try:
            process, _, host = self.path.read_text(encoding="utf-8").partition(" ")
            if not process.isdigit():
                return ""
            stopped = (
                host == platform.node() and Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            )
        except (OSError, IndexError, UnicodeDecodeError):
            return ""
        return f"process {process} on {host}" + (", which is stopped" if stopped in ("T", "t") else "")

    def _sign(self, handle: int) -> None:
        """Say who holds the lock; a full disk does not keep anybody from holding it."""
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()} {platform.node()}".encode())

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
