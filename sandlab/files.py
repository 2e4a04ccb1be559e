"""Writing to disk so that nothing is ever half there: temporary file, fsync, rename."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["StoreFull", "checksum", "clear_parts", "refuse_when_full", "sync_folder", "write_atomic"]

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
        temporary = path.with_name(f".{path.name[:60]}.{_writer()}.{uuid.uuid4().hex[:12]}.part")
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


def clear_parts(path: Path) -> None:
    """Remove what writers of `path` that were killed on this machine left behind."""
    here = re.compile(rf"\.{re.escape(path.name[:60])}\.{re.escape(_host())}-(\d+)\.[0-9a-f]{{12}}\.part")
    for name in os.listdir(path.parent) if path.parent.is_dir() else []:
        found = here.fullmatch(name)
        if found and not _lives(int(found[1])):
            (path.parent / name).unlink(missing_ok=True)


def _writer() -> str:
    return f"{_host()}-{os.getpid()}"


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "", platform.node())[:20]


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True
