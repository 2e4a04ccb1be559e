"""The store: one folder with the results of jobs, the runs of studies, and an index over both.

The folders are the truth: `studies/<study>/<preset>/<number>-<key>/` is a finished run. The SQLite index repeats them
for queries; it is mended whenever it disagrees, and nothing is ever decided by it or by the clock.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandlab._door import guarded
from sandlab.checking import fits
from sandlab.errors import BadInput, shown
from sandlab.lab._exec.jobs import Done, Task
from sandlab.lab._exec.sources import identity
from sandlab.lab._store.cache import Cache, Damaged
from sandlab.lab._store.files import FileLock, StoreFull, checksum, refuse_when_full, sync_folder, write_atomic
from sandlab.lab._store.forms import FORMS, check_run, read_json
from sandlab.lab._store.index import Index
from sandlab.lab._store.plain import Facts, Json, plain

__all__ = ["Record", "Store"]

_OLD = 3600.0  # seconds after which an unfinished file has no owner
_NUMBERED = re.compile(r"(\d{6})-[0-9a-f]{12}")
_NAME = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
_RUN = ("key", "study", "preset", "device", "executor", "started", "finished", "seconds", "code")


@dataclass(frozen=True)
class Record:
    """A finished run: its folder and what `run.json` says of it."""

    path: Path
    about: Facts

    def read(self, name: str) -> Json:
        """A JSON file of the run, `findings.json` for one."""
        return read_json(self.path / name)

    @property
    def order(self) -> tuple[int, str]:
        """Runs of a study are written in this order, whatever the clock says; older stores named them by date."""
        found = _NUMBERED.fullmatch(self.path.name)
        return (int(found[1]), "") if found else (0, self.path.name)

    @property
    def finished(self) -> float:
        return float(self.about["finished"])

    @property
    def files(self) -> dict[str, str]:
        """File → checksum."""
        return dict(self.about["files"])

    def intact(self) -> bool:
        """Whether every file has the bytes that were written, and what is shown of it the form of a run's files."""
        try:
            if not {"findings.json", "environment.json"} <= set(self.files):
                return False
            for name in FORMS.keys() & self.files.keys():
                FORMS[name](self.read(name))
            return all(checksum((self.path / name).read_bytes()) == digest for name, digest in self.files.items())
        except (OSError, ValueError):
            return False


@guarded
class Store:
    """Results under one folder: `runs/` unless SANDLAB_STORE or the caller says otherwise.

    cache/        results of jobs by key
    checkpoints/  state of trainings under way
    studies/      one folder per run: results, findings, figures, configuration, environment
    index.sqlite  runs, findings and jobs in tables, for queries
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        if not fits(str | Path | None, folder):
            raise BadInput(f"the store must be a folder, got {shown(folder)}")
        self.folder = Path(folder or os.environ.get("SANDLAB_STORE") or "runs")
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"the store must be a folder, got the file {self.folder}")
        self.cache = Cache(self.folder / "cache")
        self.index = Index(self.folder / "index.sqlite")

    @classmethod
    def open(cls, store: str | Path | Store | None = None) -> Store:
        """The store to write into; its folder is made when missing, and the index mended."""
        made = store if isinstance(store, Store) else cls(store)
        with refuse_when_full(made.folder):
            made.folder.mkdir(parents=True, exist_ok=True)
        made.mend_index()
        made.tidy()
        return made

    @classmethod
    def existing(cls, store: str | Path | None = None) -> Store:
        """The store to read from; one that is named and not there is refused, not taken for an empty one."""
        made = cls(store)
        if store is not None and not made.folder.is_dir():
            raise BadInput(f"there is no store at {made.folder}: `sandlab run STUDY --store {made.folder}` makes one")
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
        self._index("jobs", [{**row, "bytes": len(done.payload), "created": time.time()}])

    def lock(self, key: str) -> FileLock:
        """The lock under which a run with this key is written."""
        return FileLock(self.folder / "locks" / f"{key}.lock")

    def folder_for(self, *parts: str, among: Path | None = None) -> Path:
        """A new folder name below the store, numbered in the order of asking (with all folders one below `among`)."""
        base = self.folder.joinpath(*parts)
        listed = _listed(base) if among is None else [name for each in _listed(among) for name in _listed(among / each)]
        numbers = [int(found[1]) for name in listed if (found := re.match(r"\.?(?:partial-)?(\d{6})-", name))]
        return base / f"{max(numbers, default=0) + 1:06d}-{os.urandom(6).hex()}"

    def save(self, about: Facts, files: dict[str, bytes]) -> Record:
        """Write a run's folder in full, give it its name, and only then enter it into the index."""
        for part in ("study", "preset"):
            if not _NAME.fullmatch(about[part]) or ".." in about[part]:
                raise BadInput(
                    f"{part} must be words of letters, digits, '-' and '_' joined by '/', got {about[part]!r}"
                )
        with self.lock("runs"), refuse_when_full(self.folder):
            place = self.folder / "studies" / about["study"]
            target = self.folder_for("studies", about["study"], about["preset"], among=place)
            target = target.with_name(f"{target.name[:6]}-{about['key'][:12]}")
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
        self._enter(record)
        return record

    def finished(self, key: str) -> Record | None:
        """The last run with this key, when all its files are intact."""
        found = [record for record in self.records() if record.about.get("key") == key]
        if found and not found[-1].intact():
            warnings.warn(f"{found[-1].path} is damaged: the study is run again", Damaged, stacklevel=2)
            return None
        return found[-1] if found else None

    def latest(self, study: str | None = None, preset: str | None = None) -> list[Record]:
        """The last intact run of each study and preset, by name."""
        last: dict[tuple[str, str], Record] = {}
        for record in self.records(study, preset):
            if record.intact():
                last[record.about["study"], record.about["preset"]] = record
            else:
                warnings.warn(f"{record.path} is damaged and is not shown", Damaged, stacklevel=2)
        return [last[name] for name in sorted(last)]

    def records(self, study: str | None = None, preset: str | None = None) -> list[Record]:
        """Every run (of a study, of a preset), in the order in which they were written."""
        folders = [path for path in self._run_folders() if study is None or _place(self.folder, path)[0] == study]
        found = [self._record(path) for path in folders if preset is None or _place(self.folder, path)[1] == preset]
        return sorted((record for record in found if record is not None), key=lambda record: record.order)

    def mend_index(self) -> list[str]:
        """Bring the index in line with the folders; returns what was done. Its failure is told, never raised."""
        try:
            with self.lock("index"):
                return self._mend()
        except (sqlite3.Error, OSError, StoreFull) as problem:
            warnings.warn(
                f"{self.index.path} cannot be written ({problem}): the folders are read instead", stacklevel=3
            )
            return []

    def _mend(self) -> list[str]:
        done = []
        if not self.index.usable():
            if self.index.path.exists():
                warnings.warn(f"{self.index.path} is damaged: it is made again from the runs", Damaged, stacklevel=5)
            self.index.remove()
            self.index.create()
            done.append(f"{self.index.path} was made again from the folders")
        known = {row["path"] for row in self.index.rows("select path from runs")}
        listed = {row["path"] for row in self.index.rows("select distinct path from findings")} & known
        there = {_relative(self.folder, path): path for path in self._run_folders()}
        for name in sorted(set(there) - listed):
            if (record := self._record(there[name])) is not None:
                self._enter(record)
                done.append(f"{name} was entered into the index")
        if gone := known - set(there):
            self.index.forget(sorted(gone))
            done.append(f"{len(gone)} runs without a folder were taken out of the index")
        jobs = {row["key"] for row in self.index.rows("select key from jobs")}
        missing = [
            row for key in sorted(set(self.cache.stored()) - jobs) if (row := self.cache.describe(key)) is not None
        ]
        if missing:
            self.index.add("jobs", *missing)
            done.append(f"{len(missing)} jobs were entered into the index")
        return done

    def tidy(self) -> list[str]:
        """Remove what a killed run left half written. Young files may belong to a run that is alive."""
        before, removed = time.time() - _OLD, []
        patterns = (
            "cache/??/.*.part",
            "cache/??/*.lock",
            "locks/*.lock",
            "studies/**/.partial-*",
            "checkpoints/*/.*.part",
        )
        for path in [path for pattern in patterns for path in self.folder.glob(pattern)]:
            try:
                if path.stat().st_mtime >= before:
                    continue
                if path.suffix == ".lock":
                    _drop(path)
                elif path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
                removed.append(_relative(self.folder, path))
            except OSError:
                continue  # another process was faster, or the store cannot be written
        return removed

    def _run_folders(self) -> Iterator[Path]:
        base = self.folder / "studies"
        for file in base.rglob("run.json"):
            if len(file.relative_to(base).parts) >= 4 and not file.parent.name.startswith("."):
                yield file.parent

    def _record(self, path: Path) -> Record | None:
        """A run whose description is whole and speaks of its own folder alone; anything else is told and left out."""
        try:
            check_run(about := read_json(path / "run.json"))
            if (about.get("study"), about.get("preset")) != _place(self.folder, path):
                raise ValueError("it does not describe the run of its folder")
            if not all(_confined(name) for name in about["files"]):
                raise ValueError("it names files outside its folder")
            return Record(path, about)
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as problem:
            warnings.warn(f"{path / 'run.json'} is damaged ({problem}): the run is left out", Damaged, stacklevel=2)
            return None

    def _enter(self, record: Record) -> None:
        path, about = _relative(self.folder, record.path), record.about
        try:
            FORMS["findings.json"](findings := record.read("findings.json"))
            columns = ("claim", "verdict", "mean", "low", "high", "count", "paper", "relation")
            rows = [{"path": path, **{name: each[name] for name in columns}} for each in findings]
        except (OSError, ValueError):
            return
        run = {"path": path, **{name: about.get(name) for name in _RUN}, "config": json.dumps(about.get("config"))}
        self._index("runs", [run])
        self._index("findings", rows)

    def _index(self, table: str, rows: list[Facts]) -> None:
        """Repeat rows in the index; a result that is safely stored is not lost because the index cannot be written."""
        try:
            if rows:
                self.index.add(table, *rows)
        except (sqlite3.Error, OSError, StoreFull) as problem:
            warnings.warn(f"{self.index.path} cannot be written ({problem}): it is mended next time", stacklevel=3)


def _place(store: Path, path: Path) -> tuple[str, str]:
    """Study and preset of a run's folder."""
    *study, preset, _ = path.relative_to(store / "studies").parts
    return "/".join(study), preset


def _confined(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\\" not in name


def _relative(store: Path, path: Path) -> str:
    return path.relative_to(store).as_posix()


def _listed(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def _drop(path: Path) -> None:
    """Remove a lock file that nobody holds."""
    lock = FileLock(path)
    if lock.acquire():
        lock.release()
