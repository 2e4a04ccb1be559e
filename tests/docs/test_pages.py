"""What the generated pages of studies show of recorded results."""

from __future__ import annotations

import pytest

import sandlab as sl


@pytest.fixture(scope="module")
def pages(docs):
    return docs("pages")


def test_the_tables_of_a_study_stand_on_its_page_with_the_published_numbers(pages):
    page = pages._study_page(sl.get("studies", "verifier/forced-backtracking"))
    full = page.split("## Results, full")[1]
    assert "| setting | accuracy | published |" in full and "| 0.790 |" in full
    assert "Computed 20" in full


def test_long_tables_are_folded_and_cells_cannot_break_them(pages):
    rows = [{"a": 0.123456, "b": "x | y < [z"}, {"a": None, "c": True}]
    assert pages._table("few", rows) == (
        '<details open markdown="1">\n<summary>few (2 rows)</summary>\n\n'
        "| a | b | c |\n| --- | --- | --- |\n| 0.1235 | x \\| y &lt; &#91;z |  |\n|  |  | True |\n\n</details>"
    )
    assert pages._table("many", rows * 20).startswith('<details markdown="1">')
