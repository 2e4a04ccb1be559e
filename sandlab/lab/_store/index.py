"""The SQLite index of a store: which runs there are, what they found, which jobs were computed.

Everything in it can be read off the run folders, so a damaged or unwritable index loses nothing.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sandlab.lab._store.files import StoreFull
from sandlab.lab._store.plain import Facts

__all__ = ["Index"]

_VERSION = 2
_TABLES = """
create table if not exists runs (
    path text primary key, key text, study text, preset text, device text, executor text,
    started real, finished real, seconds real, code text, config text
);
create index if not exists runs_by_key on runs (key, finished);
create table if not exists findings (
    path text, claim text, verdict text, mean real, low real, high real, count integer, paper text, relation text,
    primary key (path, claim)
);
create table if not exists jobs (key text primary key, job text, code text, seconds real, bytes integer, created real);
"""


class Index:
    """A connection per call: nothing is held open between them, so that a killed run leaves nothing behind."""

    patience = 20.0  # seconds for which a locked index is waited for

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Make the tables when they are missing."""
        with self._open() as connection:
            (mode,) = connection.execute("pragma journal_mode").fetchone()
            if mode != "wal":
                connection.execute("pragma journal_mode = wal")
            connection.executescript(_TABLES)
            connection.execute(f"pragma user_version = {_VERSION}")

    def usable(self) -> bool:
        """Whether the file is an index of this version; one that is only busy is fine."""
        if not self.path.is_file():
            return False
        try:
            (version,) = self.rows("pragma user_version")
            return bool(version["user_version"] == _VERSION)
        except sqlite3.OperationalError as problem:
            if "locked" in str(problem):
                raise
            return False
        except sqlite3.DatabaseError:
            return False

    def remove(self) -> None:
        """Delete the file, whatever it is."""
        if self.path.is_dir():
            shutil.rmtree(self.path)
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def forget(self, paths: Iterable[str]) -> None:
        """Take runs and their findings out."""
        with self._open() as connection:
            for table in ("runs", "findings"):
                connection.executemany(f"delete from {table} where path = ?", [(path,) for path in paths])

    def add(self, table: str, row: Facts, *more: Facts) -> None:
        """Insert rows of the same columns in one transaction; a row with the same primary key is replaced."""
        columns = ", ".join(row)
        places = ", ".join(f":{name}" for name in row)
        with self._open() as connection:
            connection.executemany(f"insert or replace into {table} ({columns}) values ({places})", [row, *more])

    def rows(self, query: str, values: Iterable[object] = ()) -> list[Facts]:
        """The rows of a query, as dictionaries."""
        with self._open() as connection:
            return [dict(row) for row in connection.execute(query, tuple(values))]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self.path, timeout=self.patience)
            try:
                connection.row_factory = sqlite3.Row
                connection.execute("pragma synchronous = normal")  # a lost row can be read off its folder again
                with connection:
                    yield connection
            finally:
                connection.close()
        except sqlite3.OperationalError as problem:
            if "locked" in str(problem):  # whoever holds it for so long will hold it a little longer
                self.patience = 0.2
            if "full" in str(problem):
                raise StoreFull(
                    f"no room to write {self.path}: {problem}. What was finished before is kept"
                ) from problem
            raise
