"""Every id of every chapter leads to something that exists."""

from __future__ import annotations

import pytest

from sandlab.errors import BadInput
from sandlab.lab._report.coverage import REPOSITORY, read_coverage, resolve

FILES = sorted((REPOSITORY / "coverage").glob("*.toml"))


def test_every_line_of_the_tables_leads_somewhere():
    rows = read_coverage()
    assert rows
    assert [problem for row in rows for problem in row.problems] == []


def test_no_id_is_listed_twice_in_a_chapter():
    ids = [(row.chapter, row.id) for row in read_coverage()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "place",
    [
        "sandlab.worlds.dyck.language:Dyckk",
        "sandlab.worlds.no_such_file:Dyck",
        "claim:markov/weight-tying.no-such-claim",
        "claim:no/such-study.word",
        "study:no/such-study",
        "docs:no-such-page.md",
        "docs:errata.md#No such section",
        "os:path",
    ],
)
def test_a_place_that_does_not_exist_is_noticed(place):
    assert place in resolve(place)


@pytest.mark.parametrize(
    "place",
    [
        "sandlab.worlds.dyck.language:Dyck.sample",
        "sandlab.worlds.dyck.language:",
        "claim:markov/weight-tying.tied-trapped",
        "study:markov/weight-tying",
        "docs:errata.md#Dyck languages",
    ],
)
def test_a_place_that_exists_is_found(place):
    assert resolve(place) == ""


def test_a_table_with_an_empty_line_has_a_problem(tmp_path):
    (tmp_path / "01.toml").write_text('spec = "x"\n[ids]\n"a" = []\n"b" = ["sandlab:rng", "sandlab:nothing"]\n')
    first, second = read_coverage(tmp_path)
    assert first.problems == ("no place",)
    assert second.problems == ("sandlab:nothing: sandlab has no 'nothing'",)
    assert second.as_dict()["places"] == ("sandlab:rng", "sandlab:nothing")


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no coverage tables"):
        read_coverage(tmp_path)
