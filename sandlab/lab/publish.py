"""Copying a run's results out of the store, to be kept and shown: findings, figures, environment."""

from __future__ import annotations

import json
from pathlib import Path

from sandlab.lab.files import write_atomic
from sandlab.lab.store import Store, plain

__all__ = ["publish_latest"]

_ABOUT = ("study", "preset", "title", "source", "config", "device", "executor", "finished", "seconds", "jobs")


def publish_latest(store: Store, study: str, to: Path) -> list[Path]:
    """Write the last run of each preset to `to/study/preset/`; figures that are no longer drawn are removed."""
    folders = []
    for record in store.latest(study):
        folder = to / study / record.about["preset"]
        names = [name for name in record.files if name in ("findings.json", "environment.json", "tables.json")]
        figures = [name for name in record.files if name.endswith(".svg")]
        for name in names:
            write_atomic(folder / name, (record.path / name).read_bytes())
        for name in figures:
            write_atomic(folder / Path(name).name, (record.path / name).read_bytes())
        about = {name: record.about[name] for name in _ABOUT}
        write_atomic(folder / "run.json", json.dumps(plain(about), indent=1, ensure_ascii=False).encode())
        drawn = {Path(name).name for name in figures}
        for old in folder.glob("*.svg"):
            if old.name not in drawn:
                old.unlink()
        folders.append(folder)
    return folders
