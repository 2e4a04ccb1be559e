"""The coverage tables: for every id of a chapter, where in the laboratory it lives; each place is looked up."""

from __future__ import annotations

import dataclasses
import importlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from sandlab.checking import fits
from sandlab.errors import BadInput, shown
from sandlab.lab._exec.sources import PACKAGE

__all__ = ["Row", "read_coverage", "resolve"]

REPOSITORY = PACKAGE.parent


@dataclass(frozen=True)
class Row:
    """One id, the places that serve it, and what is wrong with them."""

    chapter: str
    id: str
    places: tuple[str, ...]
    problems: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        return dataclasses.asdict(self)


def read_coverage(folder: Path | None = None) -> list[Row]:
    """Every line of the tables, resolved."""
    folder = folder or REPOSITORY / "coverage"
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise BadInput(f"there are no coverage tables in {folder}: they are part of a checkout of the repository")
    return [row for file in files for row in _rows(file)]


def resolve(place: str) -> str:
    """Why a place leads nowhere, or an empty string.

    module:attribute[.attribute]   something in the code
    claim:study.word, study:name   a registered claim or study
    docs:path                      a file of the repository, optionally with #section
    """
    kind, _, rest = place.partition(":")
    try:
        if kind == "claim":
            return _claim(rest)
        if kind == "study":
            from sandlab.registry import get

            get("studies", rest)
            return ""
        if kind == "docs":
            return _document(rest)
        return _attribute(kind, rest)
    except (BadInput, ImportError, AttributeError) as problem:
        return f"{place}: {problem}"


def _rows(file: Path) -> list[Row]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:
        raise BadInput(f"{file} is no TOML table: {problem}") from None
    rows = []
    ids = table.get("ids", {})
    if not fits(dict[str, str | list[str]], ids):
        raise BadInput(f'{file} must have lines id = "place" or id = ["place", …] under [ids], got {shown(ids)}')
    for name, value in ids.items():
        places = (value,) if isinstance(value, str) else tuple(value)
        problems = tuple(problem for place in places if (problem := resolve(place)))
        rows.append(Row(str(table.get("spec", file.stem)), name, places, problems or (() if places else ("no place",))))
    return rows


def _claim(name: str) -> str:
    from sandlab.registry import get

    study, _, _ = name.rpartition(".")
    known = [claim.id for claim in get("studies", study).claims]
    return "" if name in known else f"claim:{name}: {study} has no such claim"


def _document(path: str) -> str:
    name, _, section = path.partition("#")
    file = REPOSITORY / (name if name.startswith("docs/") else f"docs/{name}")
    if not file.is_file():
        return f"docs:{path}: there is no file {file.relative_to(REPOSITORY)}"
    headings = [line.lstrip("# ").strip() for line in file.read_text(encoding="utf-8").splitlines() if line[:1] == "#"]
    return "" if not section or section in headings else f"docs:{path}: the file has no section {section!r}"


def _attribute(module: str, names: str) -> str:
    if not module.startswith("sandlab"):
        return f"{module}:{names}: a place starts with sandlab, claim, study or docs"
    thing = importlib.import_module(module)
    for name in filter(None, names.split(".")):
        thing = getattr(thing, name)
    return ""
