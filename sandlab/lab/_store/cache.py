"""Finished results by key: each is one JSON file (with its arrays beside it) whose checksum is tested on reading."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from sandlab.lab._exec.jobs import Done, Task, canonical
from sandlab.lab._exec.sources import identity
from sandlab.lab._store.codec import Payload
from sandlab.lab._store.files import FileLock, checksum, write_atomic
from sandlab.lab._store.forms import check_entry, read_json
from sandlab.lab._store.plain import Facts

__all__ = ["Cache", "Damaged", "Entry"]

_FORMAT = 1
_SUFFIXES = {"arrays": "npz", "tensors": "safetensors"}


class Damaged(UserWarning):
    """A stored file does not have the bytes that were written; it is computed again."""


@dataclass(frozen=True)
class Entry:
    """A stored result with what is known about it."""

    payload: Payload
    created: float
    seconds: float


class Cache:
    """A folder of results. Writers hold a lock on the key; a reader needs none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def lock(self, key: str) -> FileLock:
        """The lock under which a key's result is computed and written."""
        return FileLock(self.folder / key[:2] / f"{key}.lock")

    def read(self, key: str) -> Entry | None:
        """The result of a key, or None; of a damaged one nothing is used, with a warning."""
        path = self.path(key)
        for last_try in (False, True):
            try:
                return self._read(path, key)
            except FileNotFoundError as missing:
                # Arrays vanish when the entry is replaced between reading its JSON file and them: look again.
                if not path.exists():
                    return None
                problem: Exception = missing
            except (ValueError, KeyError, TypeError, AttributeError) as trouble:
                problem = trouble
            if last_try:
                warnings.warn(f"{path} is damaged ({problem}): it is computed again", Damaged, stacklevel=3)
        return None

    def write(self, task: Task, done: Done) -> None:
        """Store a result. The JSON file comes last: it is there only when everything it names is."""
        path, payload = self.path(task.key), done.payload
        parts = {part: getattr(payload, part) for part in _SUFFIXES if getattr(payload, part)}
        files = {part: checksum(data) for part, data in parts.items()}
        body = {
            "format": _FORMAT,
            "key": task.key,
            "job": identity(task.job),
            "config": canonical(task.config),
            "code": task.code,
            "created": time.time(),
            "seconds": done.seconds,
            "files": files,
            "structure": payload.structure,
        }
        for part, data in parts.items():
            write_atomic(self._part(path, part, files[part]), data)
        text = json.dumps({"checksum": _seal(body), "entry": body}, indent=1)
        write_atomic(path, text.encode())
        self._sweep(task.key, files)

    def stored(self) -> list[str]:
        """Every key with a result."""
        return sorted(path.stem for path in self.folder.glob("??/*.json"))

    def describe(self, key: str) -> Facts | None:
        """What the index repeats of a result: job, code, seconds, bytes, date."""
        try:
            check_entry(body := read_json(self.path(key))["entry"])
            facts = {name: body[name] for name in ("key", "job", "code", "seconds", "created")}
            return {**facts, "bytes": len(body["structure"])}
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _read(self, path: Path, key: str) -> Entry:
        document = read_json(path)
        body: Facts = document["entry"]
        if document["checksum"] != _seal(body) or body["key"] != key:
            raise ValueError("its checksum does not match")
        if body["format"] != _FORMAT:
            raise ValueError(f"its format is {body['format']}, this version reads {_FORMAT}")
        check_entry(body)
        parts = {}
        for part, expected in body["files"].items():
            parts[part] = self._part(path, part, expected).read_bytes()
            if checksum(parts[part]) != expected:
                raise ValueError(f"the checksum of its {part} does not match")
        return Entry(Payload(body["structure"], **parts), body["created"], body["seconds"])

    def _part(self, path: Path, part: str, digest: str) -> Path:
        """Named by content, so that a reader of an older JSON file never meets newer arrays."""
        return path.with_name(f"{path.stem}.{digest[:12]}.{_SUFFIXES[part]}")

    def _sweep(self, key: str, keep: dict[str, str]) -> None:
        path = self.path(key)
        kept = {self._part(path, part, digest) for part, digest in keep.items()}
        for suffix in _SUFFIXES.values():
            for file in path.parent.glob(f"{key}.*.{suffix}"):
                if file not in kept:
                    file.unlink(missing_ok=True)


def _seal(body: Facts) -> str:
    return checksum(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())
