"""Every block of the tutorials runs as printed, in order; their figures exist."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import pytest

from sandlab.cli import call

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "docs" / "tutorials").glob("*.md") if path.stem != "index")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
matplotlib.use("Agg")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_runs_from_its_first_block_to_its_last(page, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    blocks = FENCE.findall(page.read_text(encoding="utf-8"))
    for language, text in blocks:
        if language == "python":
            exec(compile(text, page.name, "exec", dont_inherit=True), names)
        else:
            assert language == "sh", f"{page.name}: a block without a language that a reader can run"
            for line in text.splitlines():
                assert line.startswith("sandlab ") and call(line.split()[1:]) == 0, line
    assert sum(language == "python" for language, _ in blocks) >= 4
    CHECKS[page.stem](names)


CHECKS = {
    "ngrams": lambda names: (
        (_descending(names["levels"]) and names["first"].shape == (2, 32, 32)) or pytest.fail("levels")
    ),
    "chain-of-thought": lambda names: _equal(names["accuracy"][4][0], 1.0),
    "sandbox-for-the-blackbox": lambda names: _near(names["best"].min(), names["chain"].entropy_rate()),
    "liu-thesis": lambda names: names["glitch"] or pytest.fail("a short training leaves no error to be found"),
    "li-thesis": lambda names: _equal(names["optimum"].shape, (21, 21)),
}
"""Tutorial → what its text promises of the numbers that it prints."""


def _descending(levels: dict[str, float]) -> bool:
    values = list(levels.values())
    return values == sorted(values, reverse=True)


def _equal(ours: object, promised: object) -> None:
    assert ours == promised


def _near(ours: float, promised: float) -> None:
    assert ours == pytest.approx(promised, abs=2e-3)


def test_there_is_a_tutorial_for_each_of_the_five_sources() -> None:
    index = (ROOT / "docs" / "tutorials" / "index.md").read_text(encoding="utf-8")
    assert len(PAGES) == 5 and all(f"({page.name})" in index for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_ends_with_recorded_figures_that_exist(page) -> None:
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    assert pictures and all((page.parent / picture).is_file() for picture in pictures)
