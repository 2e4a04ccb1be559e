"""The pages on taking things along and on stress cards, run as they are printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_howto import run_outside


@pytest.mark.slow  # shorter: tests/lab/test_dataset_card.py, tests/lab/test_torch_export.py
def test_data_and_circuits_leave_with_the_same_numbers(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("datasets")
    check = """
assert torch.equal(torch.tensor(rows["inputs"]), batch.inputs) and len(rows) == 200
torch.testing.assert_close(traced, logits, rtol=0, atol=1e-5)
torch.testing.assert_close(twin, logits, rtol=0, atol=1e-5)
"""
    run_outside("take-it-with-you", tmp_path, check)
    assert "## Make it again" in (tmp_path / "brackets" / "README.md").read_text()
    assert sorted(file.name for file in (tmp_path / "more-brackets").iterdir()) == [
        *("README.md", "test.parquet", "train.parquet"),
    ]


@pytest.mark.slow  # shorter: tests/lab/test_card.py
def test_a_card_of_four_lines(tmp_path: Path) -> None:
    check = """
assert card["model"] == "Bigram" and {row["task"] for row in card["rows"]} == {"facts", "parity"}
assert all(0 <= value <= 1 for row in card["rows"] for value in row["values"])
"""
    run_outside("test-an-architecture", tmp_path, check)
    assert {file.name for file in (tmp_path / "card").iterdir()} == {"card.html", "card.json", "card.png", "card.svg"}
