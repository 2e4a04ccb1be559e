"""Every id of every source has a place in the laboratory: 638 of 638, of which 79 are the tutorial's map.

An id is a name in the first column of the table of systems with which a source's description begins
(`coverage_ids.toml`). A row that names several systems counts once for each of them; a range of figures counts as the
two names it is written with (source 06: "4-4-left … 4-35"), although each figure has a line of its own in the table of
places; the line "experiments" of source 01, which has no names of its own, does not count. That makes 638; counts that
leave out ranges and second names come out a few lower (633). Tables may list figures besides, under names that are no
ids.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sandlab.lab._report.coverage import REPOSITORY

IDS: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "coverage_ids.toml").read_text(encoding="utf-8"))
SIZES = {
    "01": 56, "02": 87, "03": 42, "04": 38, "05": 36, "06": 48,
    "07": 47, "08": 69, "09": 42, "10": 79, "11": 32, "12": 62,
}  # fmt: skip
"""Ids of each source, counted by hand in its description."""


def places(source: str) -> dict[str, object]:
    return tomllib.loads((REPOSITORY / "coverage" / f"{source}.toml").read_text(encoding="utf-8"))["ids"]


def test_there_are_638_ids_and_the_map_has_79() -> None:
    assert {source: len(set(ids)) for source, ids in IDS.items()} == SIZES
    assert sum(SIZES.values()) == 638 and SIZES["10"] == 79


@pytest.mark.parametrize("source", SIZES)
def test_every_id_of_a_source_has_a_place(source: str) -> None:
    assert [name for name in IDS[source] if not places(source).get(name)] == []
