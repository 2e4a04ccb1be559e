"""The stress card: scores from the truth, matched references, a page."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import sandlab as sl
from sandlab.cli import call
from sandlab.lab._card import battery, measure, page, zoo_page
from sandlab.lab._card.battery import CardTest, Task, tasks
from sandlab.lab._card.kept import kept_cards
from sandlab.lab._card.measure import REFERENCES, Card, Reference, Row, matched, measure_card
from sandlab.lab._exec.executors import Local
from sandlab.lab._store.store import Store
from sandlab.lab.laboratory import Laboratory
from sandlab.models.base import build
from sandlab.models.recurrent import RNNConfig

CHAIN = sl.worlds.InContextMarkov(states=2, order=1, length=6)
TINY = Task(
    "chain", "counts", CHAIN, (CardTest("as trained", CHAIN, "gap"), CardTest("errors", CHAIN)), battery.training(2)
)
MODULE = """
from torch import nn
class Four(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.table = nn.Embedding(vocab, vocab)
    def forward(self, x):
        return self.table(x)
"""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A battery of one task and two steps."""
    for place in (measure, page, battery):
        monkeypatch.setattr(place, "tasks", lambda _size: [TINY])


def card(folder: Path, budget: float | None = None) -> Card:
    lab = Laboratory(Store.open(folder), Local(), budget=budget)
    return measure_card("rnn", RNNConfig(vocab=2, width=4), lab, seeds=2)


@pytest.mark.usefixtures("tiny")
def test_a_card_measures_every_test_over_seeds_and_goes_on_later(tmp_path: Path) -> None:
    assert card(tmp_path, budget=0.0).left_out == ["chain"]
    found = card(tmp_path)
    assert [(row.task, row.test, row.measure, len(row.values)) for row in found.rows] == [
        ("chain", "as trained", "gap", 2),
        ("chain", "errors", "error", 2),
    ]
    assert all(0 <= score <= 1 for row in found.rows for score in row.scores)
    assert Card.from_dict(json.loads(found.to_json())).rows[0].values == found.rows[0].values
    written = page.write_card([found, found], tmp_path / "out")
    assert {file.name for file in written.parent.iterdir()} == {"card.html", "card.json", "card.png", "card.svg"}
    assert "nats" in written.read_text() and page.table([found])[0][:2] == ["chain", "as trained"]


def test_guessing_by_frequency_scores_zero_and_the_optimum_one() -> None:
    coin = CardTest("coin", sl.worlds.MarkovChain.binary(0.1, 0.1, length=200), "gap")
    worst = measure._worst(coin)
    entropy = -(0.1 * np.log(0.1) + 0.9 * np.log(0.9))
    assert abs(worst - (np.log(2) - entropy)) < 0.02
    assert Row("t", "c", "gap", [0.0, worst, 9.0], worst, 1).scores == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("name", list(REFERENCES))
def test_references_have_the_asked_size(name: str) -> None:
    config = matched(REFERENCES[name], tasks("quick")[0], 20_000)
    assert abs(build(config).parameter_count() / 20_000 - 1) < 0.2


@pytest.mark.parametrize("name", list(REFERENCES))
def test_references_are_as_large_as_the_module_on_every_task(name: str) -> None:
    mine = RNNConfig(vocab=2, width=100)
    for task in tasks("quick"):
        theirs = measure.parameters_on(task, Reference(name, mine))
        assert abs(theirs / measure.parameters_on(task, mine) - 1) < 0.2, task.name


def test_lengths_are_doubled_and_quadrupled_wherever_inputs_have_a_length() -> None:
    fixed = {"associative recall", "flip-flop", "facts"}  # pairs, tails, and one fact at a time
    for task in tasks("quick"):
        labels = {test.label for test in task.tests}
        assert task.name in fixed or {"× 2 long", "× 4 long"} <= labels, task.name
        lengths = {test.label: battery._length(test.world) for test in task.tests}
        if "× 4 long" in labels:
            assert lengths["× 4 long"] > 1.7 * lengths["× 2 long"] > 2.8 * lengths["as trained"], task.name


@pytest.mark.parametrize("size", ["quick", "full"])
def test_every_world_of_the_battery_has_exact_truth_and_answers_for_any_module(size: str) -> None:
    names = [task.name for task in tasks(size)]
    assert len(set(names)) == len(names) >= 12
    for task in tasks(size):
        for world in (task.world, *(test.world for test in task.tests)):
            batch = world.sample(4, rng=sl.rng(0))
            assert not batch.inputs.is_floating_point() and not batch.soft
            assert batch.inputs.shape[1] <= task.longest
            assert np.isfinite(world.optimal_loss(batch))
        assert all(measure._worst(test) > 0.05 for test in task.tests)


def script() -> ModuleType:
    """scripts/zoo_cards.py, loaded from its file."""
    spec = importlib.util.spec_from_file_location("zoo_cards", Path(__file__).parents[2] / "scripts" / "zoo_cards.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.usefixtures("tiny")
def test_the_zoo_is_measured_filled_up_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    zoo = script()
    other = replace(TINY, name="chain again")
    for place in (measure, page, battery, zoo, zoo_page):
        monkeypatch.setattr(place, "tasks", lambda _size: [TINY, other])
    monkeypatch.setattr(measure, "ZOO", tmp_path / "cards")
    assert "No card of a built-in architecture is recorded" in str(zoo_page.pages()["cards.md"])
    words = ["--size", "quick", "--only", "rnn", "--seeds", "2", "--workers", "1"]
    words += ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "cards")]
    assert zoo.main([*words, "--tasks", "chain"]) == 0
    (part,) = measure.recorded("quick")
    assert part.left_out == ["chain again"] and {row.task for row in part.rows} == {"chain"}
    assert zoo.main(words) == 0
    (whole,) = measure.recorded("quick")
    assert whole.left_out == [] and whole.rows[:2] == part.rows and "torch" in whole.made
    capsys.readouterr()
    assert zoo.main(words) == 0 and capsys.readouterr().out == "rnn: complete\n"
    assert zoo.main(["--only", "gpt"]) == 2
    made = zoo_page.pages()
    text, picture = made["cards.md"], made["cards-quick.svg"]
    assert isinstance(text, str) and "| chain again | errors |" in text
    assert isinstance(picture, bytes) and picture.startswith(b"<?xml")


@pytest.mark.usefixtures("tiny")
def test_rows_of_two_devices_name_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zoo, one = script(), card(tmp_path)
    again = replace(one, device="cuda", made="elsewhere", rows=[replace(row, task="chain again") for row in one.rows])
    for place in (page, zoo):
        monkeypatch.setattr(place, "tasks", lambda _size: [TINY, replace(TINY, name="chain again")])
    both = zoo._joined(one, again)
    assert both.device == "cpu and cuda" and both.left_out == [] and both.made == f"{one.made}; elsewhere"
    assert {(row.task, row.device) for row in both.rows} == {("chain", "cpu"), ("chain again", "cuda")}
    assert zoo._joined(both, again) == both, "a row keeps its device"
    assert "on cpu and cuda" in page.described(both) and "; on cuda: chain again" in page.described(both)
    assert zoo._joined(None, one).rows == one.rows, "rows of one device need not name it"


@pytest.mark.usefixtures("tiny")
def test_the_terminal_draws_a_card_of_ones_own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "four_lines.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ["card", "four_lines.py:Four", "--seeds", "2", "--store", "runs", "--on", "local", "--against", "rnn"]
    assert call(words) == 0
    assert json.loads((tmp_path / "card" / "card.json").read_text())["model"] == "Four"
    (tmp_path / "runs" / "cards" / "broken.json").write_text('{"model": 1}')
    assert [card.model for card in kept_cards(tmp_path / "runs")] == ["Four", "rnn"]
    assert call([*words, "--against", "gpt"]) == 2
    assert call([*words, "--tasks", "chains"]) == 2


@pytest.mark.parametrize("size", ["quick", "full"])
def test_the_recorded_cards_of_the_zoo_are_whole(size: str) -> None:
    cards = measure.recorded(size)
    assert [card.model for card in cards] == list(measure.REFERENCES)
    for card in cards:
        assert card.left_out == [] and {row.task for row in card.rows} == {task.name for task in battery.tasks(size)}
        assert all(len(row.values) == card.seeds for row in card.rows)
