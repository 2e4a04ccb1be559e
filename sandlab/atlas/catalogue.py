"""The worlds that come with the package, read from their files: the first page needs no torch and no worker."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sandlab.lab._store.plain import Facts

__all__ = ["CLOSED", "ON_FILES", "PATHS", "built_in_worlds", "has_plugins"]

ON_FILES = ("aligned-text", "contrastive-pairs", "masked-text", "topic-text")  # worlds that read a file of the user's
CLOSED = ("own-module", "one-layer-topics")  # models that do
PATHS = ("folder", "path", "paths")  # settings that name files: for Python and the terminal

# A registered class and the first line of its text. Parsing the files as Python would take a quarter of a second.
_ENTRY = re.compile(r'^@register\("worlds".*\n(?:@.*\n)*class (\w+).*:\n    """(.*?)(?:"""|\n)', re.MULTILINE)


def built_in_worlds() -> list[Facts]:
    """Name, summary and chapter of every built-in world that is made of plain settings; plug-ins are not looked for."""
    from sandlab.registry import kebab

    package = Path(__file__).resolve().parents[1]
    found = []
    for file in (package / "worlds").rglob("*.py"):
        parts = file.relative_to(package).parts
        chapter = parts[1] if len(parts) > 2 else ""
        for name, summary in _ENTRY.findall(file.read_text(encoding="utf-8")):
            found.append({"name": kebab(name), "summary": summary.strip(), "chapter": chapter})
    return sorted((each for each in found if each["name"] not in ON_FILES), key=lambda each: each["name"])


def has_plugins() -> bool:
    """Whether other files or packages may register worlds too; nothing is loaded."""
    from importlib.metadata import entry_points

    from sandlab.plugins import GROUP, VARIABLE

    return bool(os.environ.get(VARIABLE)) or bool(entry_points(group=GROUP))
