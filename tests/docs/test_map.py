"""The map, the theorem cards and the bibliography lead to things that exist, and their pages are up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandlab.lab._report.coverage import resolve

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages(docs):
    return docs("map_pages")


def test_every_place_leads_somewhere(pages) -> None:
    cards = {theorem.id for theorem in pages.theorems()}
    places = [place for box in pages.sandboxes() for question in pages.QUESTIONS for place in getattr(box, question)]
    places += [place for reference in pages.references() for place in reference.at]
    unknown = [place for place in places if place.startswith("theorem:") and place[8:] not in cards]
    assert unknown == []
    assert [problem for place in set(places) if place[:8] != "theorem:" and (problem := resolve(place))] == []


def test_every_theorem_has_a_test_and_a_reference(pages) -> None:
    keys = {reference.key for reference in pages.references()}
    for theorem in pages.theorems():
        file, _, test = theorem.check.partition("::")
        assert theorem.reference in keys and theorem.tag in "SKV"
        assert not test or f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), theorem.id
        assert (ROOT / file).is_file()
    assert {f"C{number}" for number in range(1, 17)} <= {theorem.id for theorem in pages.theorems()}


def test_models_of_the_map_exist(pages) -> None:
    import sandlab as sl

    for box in pages.sandboxes():
        for model in box.models:
            assert hasattr(sl.models, model), f"{box.id}: {model}"


def test_keys_are_unique_and_there_are_about_ninety_references(pages) -> None:
    keys = [reference.key for reference in pages.references()]
    assert len(keys) == len(set(keys)) and 85 <= len(keys) <= 110


def test_the_registry_is_keyed_by_data_model_and_question(pages) -> None:
    found = pages.registry()
    assert "study:knowledge/hallucination-stage" in found["fact-recall", "LinearAttentionFacts", "learn"]
    assert ("fact-recall", "LinearAttentionFacts", "generalise") not in found


@pytest.mark.parametrize("file", ["map.md", "theorems.md", "bibliography.md", "circuit-classes.md", "statements.md"])
def test_pages_are_what_the_data_say(pages, file: str) -> None:
    written = (ROOT / "docs" / file).read_text(encoding="utf-8")
    assert written == pages.pages()[file], "run `python docs/map_pages.py`"


def test_a_rung_is_checked_from_the_command_line(pages, capsys) -> None:
    assert pages.main(["check", "L"]) == 0
    assert "holds" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no theorem"):
        pages.main(["check", "C99"])


def test_a_theorem_card_is_checked_from_the_command_line(pages) -> None:
    assert pages.main(["check", "C14"]) == 0
