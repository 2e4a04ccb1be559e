"""Copying a run's results out of the store, to be kept and shown: findings, figures, environment."""

from __future__ import annotations

import json
from pathlib import Path

from sandlab.lab._report.ledger import LEDGER, append, entries
from sandlab.lab._store.files import write_atomic
from sandlab.lab._store.plain import plain
from sandlab.lab._store.store import Store

__all__ = ["publish_latest"]

_ABOUT = (
    "study", "preset", "base", "collect", "title", "source", "config", "device", "executor", "finished", "seconds",
    "jobs",
)  # fmt: skip
_MOST_VALUES = 64  # of one finding: enough to see the spread, few enough to keep in a repository


def publish_latest(store: Store, study: str, to: Path) -> list[Path]:
    """Write the last run of each preset to `to/study/preset/`; figures that are no longer drawn are removed.

    Every finding is also appended to the ledger `to/ledger.jsonl`. Runs with settings of their own are not published.
    """
    folders = []
    for record in store.latest(study):
        if record.about["preset"] == "custom":
            continue
        folder = to / study / record.about["preset"]
        names = [name for name in record.files if name in ("environment.json", "tables.json")]
        figures = [name for name in record.files if name.endswith(".svg")]
        findings = [{**each, "values": each["values"][:_MOST_VALUES]} for each in record.read("findings.json")]
        write_atomic(folder / "findings.json", _json(findings))
        for name in names:
            write_atomic(folder / name, (record.path / name).read_bytes())
        for name in figures:
            write_atomic(folder / Path(name).name, (record.path / name).read_bytes())
        about = {name: record.about.get(name, "") for name in _ABOUT}
        write_atomic(folder / "run.json", _json(about))
        append(to / LEDGER, entries(about, findings))
        drawn = {Path(name).name for name in figures}
        for old in folder.glob("*.svg"):
            if old.name not in drawn:
                old.unlink()
        folders.append(folder)
    return folders


def _json(value: object) -> bytes:
    return json.dumps(plain(value), indent=1, ensure_ascii=False).encode()
