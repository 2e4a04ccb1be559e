"""Every test that the errata name exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_that_the_errata_name_exists() -> None:
    named = re.findall(r"`([\w/]*test_\w+\.py)::(\w+)`", (ROOT / "docs" / "errata.md").read_text(encoding="utf-8"))
    assert len(named) > 100
    files = {file: ROOT / file for file, _ in named}
    assert [file for file, path in files.items() if not path.exists()] == []
    texts = {file: path.read_text(encoding="utf-8") for file, path in files.items()}
    assert [name for file, name in named if f"def {name}(" not in texts[file]] == []
