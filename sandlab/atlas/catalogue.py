"""The worlds that come with the package, read from their files: the first page needs no torch and no worker."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

__all__ = ["ON_FILES", "PATHS", "built_in_worlds", "has_plugins"]

ON_FILES = ("aligned-text", "contrastive-pairs", "masked-text", "topic-text")  # worlds that read a file of the user's
PATHS = ("folder", "path", "paths")  # settings that name files: for Python and the terminal


def built_in_worlds() -> list[dict[str, Any]]:
    """Name, summary and chapter of every built-in world that is made of plain settings; plug-ins are not looked for."""
    from sandlab.registry import KINDS, kebab, public_names

    package = Path(__file__).resolve().parents[2]
    found = []
    for module in sorted(set(public_names(KINDS["worlds"]).values())):
        text = package.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        if '@register("worlds"' in text:
            chapter = module.split(".")[2] if module.count(".") > 2 else ""
            found += [
                {"name": kebab(node.name), "summary": _first_line(node), "chapter": chapter}
                for node in ast.parse(text).body
                if isinstance(node, ast.ClassDef) and any(map(_enters_worlds, node.decorator_list))
            ]
    return sorted((each for each in found if each["name"] not in ON_FILES), key=lambda each: each["name"])


def has_plugins() -> bool:
    """Whether other files or packages may register worlds too; nothing is loaded."""
    from importlib.metadata import entry_points

    from sandlab.plugins import GROUP, VARIABLE

    return bool(os.environ.get(VARIABLE)) or bool(entry_points(group=GROUP))


def _enters_worlds(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).startswith("register('worlds'")


def _first_line(node: ast.ClassDef) -> str:
    return (ast.get_docstring(node) or "").strip().split("\n")[0]
