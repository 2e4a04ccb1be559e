"""What a worker may touch while it answers: installed code, published records and the store, nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sandlab.errors import BadInput

__all__ = ["Closed", "close_files", "readable_roots"]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = ("os.system", "subprocess.Popen", "socket.connect", "os.exec", "os.posix_spawn")
_REFUSAL = "a page opens no files of this machine"


class Closed(BadInput, PermissionError):
    """Refused like a file without permission: a library that can do without its cache goes on."""


def readable_roots() -> list[Path]:
    """The installed code, the published records, and what the system says about itself."""
    package = Path(__file__).resolve().parents[1]
    own = [package, package.parent / "coverage", package.parent / "docs", Path.home() / ".cache" / "matplotlib"]
    return [*own, Path(sys.prefix), Path(sys.base_prefix), Path("/usr/lib"), Path("/usr/share"), Path("/sys")]


def close_files(readable: Iterable[Path], writable: Iterable[Path] = ()) -> None:
    """From now on this process opens no other files, starts no programs and connects to nothing.

    Nothing that a page sends is meant to become a path; this holds even where a world or a reader takes one.
    """
    sys.dont_write_bytecode = True
    free = [os.path.realpath(root) for root in writable]
    seen = [os.path.realpath(root) for root in readable] + free

    def inside(path: str, roots: list[str]) -> bool:
        return any(path == root or path.startswith(root + os.sep) for root in roots)

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN:
            raise Closed(_REFUSAL)
        if event != "open" or isinstance(arguments[0], int) or arguments[0] is None:
            return
        path, flags = os.path.realpath(os.fsdecode(arguments[0])), arguments[2] or 0
        if path == os.devnull or path.startswith("/proc/self/") or path.startswith(f"/proc/{os.getpid()}/"):
            return
        if not inside(path, free if flags & _WRITES else seen):
            raise Closed(_REFUSAL)

    sys.addaudithook(check)
