"""The page on programs runs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "write-a-program.md"


def test_writing_and_compiling_programs(capsys) -> None:
    names: dict[str, object] = {}
    for text in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(text, PAGE.name, "exec"), names)
    assert "operations, counts nested 2 deep" in capsys.readouterr().out
