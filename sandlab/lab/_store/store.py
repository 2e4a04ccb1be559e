"""The store: one folder with the results of jobs, the runs of studies, and an index over both."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
import uuid
import warnings
from dataclasses import dataclass
from pathlib import Path

from sandlab.errors import BadInput
from sandlab.lab._exec.jobs import Done, Task
from sandlab.lab._exec.sources import identity
from sandlab.lab._store.cache import Cache, Damaged
from sandlab.lab._store.files import FileLock, StoreFull, checksum, refuse_when_full, sync_folder, write_atomic
from sandlab.lab._store.index import Index
from sandlab.lab._store.plain import Facts, Json, plain

__all__ = ["Record", "Store"]

_OLD = 3600.0  # seconds after which an unfinished file has no owner


@dataclass(frozen=True)
class Record:
    """A finished run: its folder and what `run.json` says of it."""

    path: Path
    about: Facts

    def read(self, name: str) -> Json:
        """A JSON file of the run, `findings.json` for one."""
        return json.loads((self.path / name).read_text(encoding="utf-8"))

    @property
    def finished(self) -> float:
        return float(self.about["finished"])

    @property
    def files(self) -> dict[str, str]:
        """File → checksum."""
        return dict(self.about["files"])

    def intact(self) -> bool:
        """Whether every file has the bytes that were written."""
        try:
            return all(checksum((self.path / name).read_bytes()) == digest for name, digest in self.files.items())
        except FileNotFoundError:
            return False


class Store:
    """Results under one folder: `runs/` unless SANDLAB_STORE or the caller says otherwise.

    cache/      results of jobs by key
    checkpoints/  state of trainings under way
    studies/    one folder per run: findings, figures, metrics, configuration, environment
    index.sqlite  runs, findings and jobs in tables
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = Path(folder or os.environ.get("SANDLAB_STORE") or "runs")
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"the store must be a folder, got the file {self.folder}")
        self.cache = Cache(self.folder / "cache")
        self.index = Index(self.folder / "index.sqlite")

    @classmethod
    def open(cls, store: str | Path | Store | None = None) -> Store:
        """The store to write into; its folder and tables are made when missing."""
        made = store if isinstance(store, Store) else cls(store)
        with refuse_when_full(made.folder):
            made.folder.mkdir(parents=True, exist_ok=True)
        with made.lock("index"):  # of several runs that begin at once, one makes the tables
            if made.index.damaged():
                made.rebuild()
        made._tidy()
        return made

    @property
    def checkpoints(self) -> Path:
        """Where trainings inside jobs keep their state while they run, one folder per job."""
        return self.folder.absolute() / "checkpoints"

    def keep(self, task: Task, done: Done) -> None:
        """Store a job's result; the caller holds the lock on its key."""
        self.cache.write(task, done)
        if task.scratch:
            shutil.rmtree(task.scratch, ignore_errors=True)
        row = {"key": task.key, "job": identity(task.job), "code": task.code, "seconds": done.seconds}
        self.index.add("jobs", {**row, "bytes": len(done.payload), "created": time.time()})

    def lock(self, key: str) -> FileLock:
        """The lock under which a run with this key is written."""
        return FileLock(self.folder / "locks" / f"{key}.lock")

    def folder_for(self, *parts: str) -> Path:
        """A new name under the store that sorts by time."""
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        return self.folder.joinpath(*parts, f"{stamp}-{uuid.uuid4().hex[:8]}")

    def save(self, about: Facts, files: dict[str, bytes]) -> Record:
        """Write a run's folder in full, give it its name, and only then enter it into the index."""
        target = self.folder_for("studies", about["study"], about["preset"])
        partial = target.with_name(f".partial-{target.name}")
        try:
            for name, data in files.items():
                write_atomic(partial / name, data)
            about = {**about, "files": {name: checksum(data) for name, data in files.items()}}
            write_atomic(partial / "run.json", json.dumps(plain(about), indent=1).encode())
            os.rename(partial, target)
            sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        record = Record(target, plain(about))
        self._enter(self.index, record)
        return record

    def finished(self, key: str) -> Record | None:
        """The last run with this key, when all its files are intact."""
        for path in self._paths("where key = ? order by finished desc limit 1", [key]):
            record = self._record(path)
            if record is not None and record.intact():
                return record
            warnings.warn(f"{path} is damaged: the study is run again", Damaged, stacklevel=2)
        return None

    def latest(self, study: str | None = None, preset: str | None = None) -> list[Record]:
        """The last run of each study and preset, by name."""
        wanted = [("study", study), ("preset", preset)]
        given = [(column, value) for column, value in wanted if value is not None]
        where = "where " + " and ".join(f"{column} = ?" for column, _ in given) if given else ""
        last: dict[tuple[str, ...], Record] = {}
        for path in self._paths(f"{where} order by finished desc", [value for _, value in given]):
            name = path.parts[:-1]
            if name not in last and (record := self._record(path)) is not None:
                last[name] = record
        return [last[name] for name in sorted(last)]

    def rebuild(self) -> None:
        """Make the index anew from the run folders, when it is damaged."""
        warnings.warn(f"{self.index.path} is damaged: it is made anew from the runs", Damaged, stacklevel=2)
        for suffix in ("", "-wal", "-shm"):
            self.index.path.with_name(self.index.path.name + suffix).unlink(missing_ok=True)
        self.index.create()
        for record in self._scan():
            self._enter(self.index, record)

    def _tidy(self) -> None:
        """Remove what a killed run left half written. Young files may belong to a run that is alive."""
        before = time.time() - _OLD
        for file in self.folder.glob("cache/??/.*.part"):
            if file.stat().st_mtime < before:
                file.unlink(missing_ok=True)
        for folder in (self.folder / "studies").rglob(".partial-*"):
            if folder.stat().st_mtime < before:
                shutil.rmtree(folder, ignore_errors=True)

    def _paths(self, condition: str, values: list[object]) -> list[Path]:
        """Folders of runs by the index; by themselves where the index cannot be read (a full disk, a read-only one)."""
        query = f"select path from runs {condition}"
        try:
            rows = self.index.rows(query, values) if self.index.path.exists() else []
            return [self.folder / row["path"] for row in rows]
        except (sqlite3.DatabaseError, StoreFull):
            index = sqlite3.connect(":memory:")
            columns = ("key", "study", "preset", "finished")
            index.execute(f"create table runs (path, {', '.join(columns)})")
            found = [[str(record.path), *(record.about[name] for name in columns)] for record in self._scan()]
            index.executemany("insert into runs values (?, ?, ?, ?, ?)", found)
            return [Path(path) for (path,) in index.execute(query, values)]

    def _scan(self) -> list[Record]:
        files = sorted((self.folder / "studies").rglob("run.json"))
        found = [self._record(file.parent) for file in files if not file.parent.name.startswith(".")]
        return [record for record in found if record is not None]

    def _record(self, path: Path) -> Record | None:
        try:
            return Record(path, json.loads((path / "run.json").read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError):
            return None

    def _enter(self, index: Index, record: Record) -> None:
        path, about = str(record.path.relative_to(self.folder)), record.about
        names = ("key", "study", "preset", "device", "executor", "started", "finished", "seconds", "code")
        index.add(
            "runs", {"path": path, **{name: about[name] for name in names}, "config": json.dumps(about["config"])}
        )
        columns = ("claim", "verdict", "mean", "low", "high", "count", "paper", "relation")
        rows = [{"path": path, **{name: each[name] for name in columns}} for each in record.read("findings.json")]
        if rows:
            index.add("findings", *rows)
