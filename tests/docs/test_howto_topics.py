"""The page on topics in encoders runs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "find-topics-in-an-encoder.md"


def test_finding_topics_in_an_encoder(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for text in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(text, PAGE.name, "exec"), names)
    said = capsys.readouterr().out
    assert "9 documents" in said and "untrained" in said
    assert (tmp_path / "values.gif").stat().st_size > 1000
    assert len(names["frames"]) == 7
