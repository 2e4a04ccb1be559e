"""The README's Python runs as printed."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_python_block_of_the_readme_runs(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (text,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict = {}
    exec(compile(text, README.name, "exec", dont_inherit=True), names)
    assert names["history"].loss[-1] < names["history"].loss[0]
    assert names["sl"].lenses.accuracy(names["shortcut"], names["machine"], examples=64, rng=names["sl"].rng(3)) == 1.0


def test_the_first_screen_has_a_picture_and_two_commands() -> None:
    first = README.read_text(encoding="utf-8")[:1500]
    assert "![" in first and "make tour" in first and "pip install ." in first
    assert all((README.parent / picture).is_file() for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", first))
