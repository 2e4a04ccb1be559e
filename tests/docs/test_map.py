"""The map, the theorem cards and the bibliography lead to things that exist, and their pages are up to date."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from sandlab.lab._report.coverage import resolve
from sandlab.models.base import Config
from sandlab.worlds.base import World

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages(docs):
    return docs("map_pages")


def test_every_place_leads_somewhere(pages) -> None:
    cards = {theorem.id for theorem in pages.theorems()}
    places = [place for cell in pages.registry().values() for place in cell]
    places += [place for reference in pages.references() for place in reference.at]
    unknown = [place for place in places if place.startswith("theorem:") and place[8:] not in cards]
    assert unknown == []
    assert [problem for place in set(places) if place[:8] != "theorem:" and (problem := resolve(place))] == []


def test_every_theorem_has_a_test_and_a_reference(pages) -> None:
    keys = {reference.key for reference in pages.references()}
    for theorem in pages.theorems():
        assert theorem.reference in keys and theorem.tag in "SKV"
        for check in theorem.check:
            file, _, test = check.partition("::")
            assert (ROOT / file).is_file()
            assert not test or f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), theorem.id
    assert {f"C{number}" for number in range(1, 17)} <= {theorem.id for theorem in pages.theorems()}


def test_worlds_and_models_of_the_map_exist(pages) -> None:
    import sandlab as sl

    assert [world for box in pages.sandboxes() for world in box.worlds if not hasattr(sl.worlds, world)] == []
    assert [model for _, model, _ in pages.registry() if not hasattr(sl.models, model)] == []


def test_the_map_has_a_row_for_each_sandbox_of_the_tutorial_and_one_for_mixtures(pages) -> None:
    ids = tomllib.loads((ROOT / "tests" / "coverage_ids.toml").read_text(encoding="utf-8"))["10"]
    rows = [box.id for box in pages.sandboxes()]
    assert len(rows) == len(set(rows)) == 31 and set(rows) - {"mixture"} <= set(ids)


def settled(value: object, seen: set[int]) -> Iterator[object]:
    """Every world and every model's options in a study's settings."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (World, Config)):
        yield value
    inside: Iterable[object] = ()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inside = vars(value).values()
    elif isinstance(value, (list, tuple)):
        inside = value
    for each in inside:
        yield from settled(each, seen)


def test_a_study_in_a_cell_trains_that_model_on_that_sandbox(pages) -> None:
    """Studies whose settings hold no world or no model (they build them when they run) are not decided here."""
    import sandlab as sl

    worlds = {box.id: tuple(getattr(sl.worlds, name) for name in box.worlds) for box in pages.sandboxes()}
    wrong, decided = [], 0
    for (data, model, question), places in pages.registry().items():
        for name in (place[6:] for place in places if place.startswith("study:")):
            found = list(settled(tuple(sl.get("studies", name).presets.values()), set()))
            drawn = [each for each in found if isinstance(each, World)]
            trained = {type(each).__name__.removesuffix("Config") for each in found if isinstance(each, Config)}
            there = not drawn or any(isinstance(each, worlds[data]) for each in drawn)
            used = not trained or {model, model.removesuffix("Transformer")} & trained
            decided += bool(drawn and trained)
            wrong += [] if there and used else [(data, model, question, name)]
    assert wrong == [] and decided > 40


def test_keys_are_unique_and_there_are_about_ninety_references(pages) -> None:
    keys = [reference.key for reference in pages.references()]
    assert len(keys) == len(set(keys)) and 85 <= len(keys) <= 110


def test_the_registry_is_keyed_by_data_model_and_question(pages) -> None:
    found = pages.registry()
    assert "study:knowledge/hallucination-stage" in found["fact-recall", "LinearAttentionFacts", "learn"]
    assert "study:knowledge/hallucination-stage" not in found["fact-recall", "FactTransformer", "learn"]
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
