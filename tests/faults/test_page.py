"""docs/reliability.md says which test shows what: every defect has a line, and every test that is named exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")


def defined(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_defect_has_a_test_that_exists() -> None:
    lines = dict(re.findall(r"^\| ([DN]\d+) \|(.*)$", PAGE, re.MULTILINE))
    defects = [f"D{number}" for number in range(1, 27)] + [f"N{number}" for number in range(1, 11)]
    assert sorted(lines, key=lambda name: (name[0], int(name[1:]))) == defects
    for defect, line in lines.items():
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", line)
        assert named, defect
        for file, test in named:
            assert test in defined(file), f"{defect}: {file} has no {test}"


def test_every_file_that_is_named_exists() -> None:
    missing = [file for file in re.findall(r"tests/[\w/]+\.py", PAGE) if not (ROOT / file).is_file()]
    assert not missing
