"""Models that a page has trained and kept: folders of the store, named by the server."""

from __future__ import annotations

import io
import json
import secrets
import shutil
import zipfile
from pathlib import Path

from sandlab.atlas.jobs import Job
from sandlab.errors import BadInput
from sandlab.lab._store.plain import Facts

__all__ = ["Kept"]


class Kept:
    """`<store>/atlas/running/…` while a training runs, `<store>/atlas/kept/…` once it is kept."""

    def __init__(self, store: Path) -> None:
        self.folder = store.resolve() / "atlas"

    def fresh(self) -> Path:
        return self.folder / "running" / secrets.token_hex(6)

    def keep(self, job: Job) -> str:
        """Move what a training wrote where it stays; its name."""
        if job.kept:
            return job.kept
        if job.folder is None or not job.saved or job.alive:
            raise BadInput("there is nothing to keep yet: stop the training or wait for its end")
        place = self.folder / "kept" / job.folder.name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(job.folder, place)
        job.folder, job.kept = place, place.name
        return job.kept

    def all(self) -> list[Facts]:
        """What is kept, oldest first."""
        found = []
        for place in sorted((self.folder / "kept").glob("*/about.json"), key=lambda file: file.stat().st_mtime):
            try:
                about = json.loads(place.read_text(encoding="utf-8"))
            except (OSError, ValueError):  # someone has been at the store
                continue
            loss = sum(about["loss"][-1]) / len(about["loss"][-1]) if about["loss"] else None
            facts = {name: about[name] for name in ("world", "settings", "model", "steps", "seeds")}
            found.append({"name": place.parent.name, **facts, "loss": loss})
        return found

    def place(self, name: str) -> Path:
        """The folder of a kept model, found among those there are: a name is never used as a path."""
        for file in (self.folder / "kept").glob("*/about.json"):
            if file.parent.name == name:
                return file.parent
        raise BadInput(f"no model is kept under the name {name[:40]!r}")


def packed(folder: Path) -> bytes:
    """All files of a folder in one archive."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return data.getvalue()
