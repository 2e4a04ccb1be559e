"""The terminal's doors to the rooms: compiled automata, and commands that rooms bring themselves."""

from __future__ import annotations

import json

import pytest
import torch

import sandlab as sl
from sandlab.cli import call


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A screen on which no row is broken."""
    monkeypatch.setenv("COLUMNS", "140")


def answer(capsys, *arguments: str, code: int = 0):
    assert call(list(arguments)) == code, capsys.readouterr()
    printed = capsys.readouterr()
    return json.loads(printed.out) if "--json" in arguments else printed.out + printed.err


def test_compile_prints_algebra_sizes_and_a_clean_check_and_saves_the_model(capsys, tmp_path):
    text = answer(capsys, "compile", "(ab)*", "--length", "8", "--save", str(tmp_path / "model"))
    assert "semigroup" in text and "scan" in text and "no wrong label" in text
    model = sl.models.load(tmp_path / "model")
    machine = sl.worlds.read_machine("(ab)*")
    words = torch.cartesian_prod(*[torch.arange(2)] * 6)
    truth = torch.as_tensor(machine.labels)[machine.run(words)]
    assert torch.equal(model(words).argmax(-1), truth)
    facts = answer(capsys, "compile", "C3", "--length", "8", "--method", "scan", "--no-compare", "--json")
    assert facts["algebra"]["states"] == 3
    assert facts["check"]["exhaustive_errors"] == 0


def test_compile_lists_constructions_by_depth_and_what_does_not_apply_by_reason(capsys):
    text = answer(capsys, "compile", "(ab)*", "--length", "8")
    assert text.index("krohn-rhodes") < text.index("sequential") and "1 × 8 steps" in text
    assert "direct-product, semidirect, solvable-group, group" in text and "try method" not in text
    # (ab)* has three states: what is still possible is narrowed down from {0, 1, 2} to one of two, then to one.
    assert "level 2: {0, 1, 2} into {" in text and "level 1: {" in text and ": resets" in text
    rows = {row["method"]: row for row in answer(capsys, "compile", "S5", "--length", "4", "--json")["methods"]}
    assert not rows["krohn-rhodes"]["applies"] and "S5 (order 120" in rows["krohn-rhodes"]["note"]
    assert rows["scan"]["depth"] == 2 and rows["scan"]["heads"] == 2 and rows["scan"]["bits"] > 0


def test_compile_predicts_acceptance_and_draws(capsys, tmp_path):
    folder = tmp_path / "pictures"
    options = ["--length", "6", "--accept", "--no-compare", "--pictures", str(folder), "--save", str(tmp_path / "m")]
    text = answer(capsys, "compile", "(ab)*", *options)
    assert "no wrong label" in text and str(folder / "tower.svg") in text
    assert {path.stem for path in folder.iterdir()} == {"machine", "cayley", "tower", "wiring", "computation"}
    model = sl.models.load(tmp_path / "m")
    assert model(torch.tensor([[0, 1, 0, 1, 1, 0]])).argmax(-1).tolist() == [[0, 1, 0, 1, 0, 0]]


def test_a_json_automaton_with_names_is_compiled(capsys, tmp_path):
    path = tmp_path / "lamp.json"
    rows = {"off": {"press": "on", "wait": "off"}, "on": {"press": "off", "wait": "on"}}
    path.write_text(json.dumps({"transitions": rows, "start": "off", "accepting": ["on"]}))
    facts = answer(capsys, "compile", str(path), "--length", "9", "--no-compare", "--json")
    assert facts["algebra"]["groups"] == ["C2"] and facts["check"]["random_errors"] == 0
    assert facts["note"].startswith("auto: modular-counter")


def test_a_machine_whose_semigroup_is_too_large_is_still_compiled_by_scan(capsys):
    turn, swap = [*range(1, 8), 0], [1, 0, *range(2, 8)]
    table = [list(row) for row in zip(turn, swap)]
    text = answer(capsys, "compile", json.dumps({"transitions": table}), "--length", "4", "--no-compare")
    assert "auto: scan" in text and "more than" in text and "no wrong label" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compile", "(ab"], "never closed"),
        (["compile", "(ab)*", "--method", "skan"], "did you mean 'scan'"),
        (["compile", "(ab)*", "--length", "0"], "length must be"),
        (["compile", "(ab)*", "--length", "100000"], "length must be"),
        (["compile", "C3", "--accept"], "accepting states"),
        (["compile", "Dyck40_2"], "stacks"),
        (["compile", "C200", "--method", "scan"], "at most 80"),
        (["compile", '{"transitions": [[0, 2], [1, 1]]}'], "between 0 and 1, got 2"),
        (["compile", '{"transitions": [[0, 1], [1]]}'], "1 of 2 letters"),
        (["compile", '{"transitions": [[]]}'], "alphabet is empty"),
        (["compile", '{"transitions": {"x": {"a": "x"}, "y": {"b": "x"}}}'], "no transition for letter 'b'"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(capsys, arguments, words):
    text = answer(capsys, *arguments, code=2)
    assert words in text
    assert "Traceback" not in text


def test_a_part_of_a_study_names_the_claims_it_does_not_measure(capsys, tmp_path):
    small = ["--set", "base.training.steps=2", "--set", "base.model.width=8", "--seeds", "1"]
    chosen = ["--set", "machines=C2,S4", "--set", "depths=1", "--store", str(tmp_path), "--on", "local"]
    assert call(["run", "automata/depth-table", *small, *chosen]) in (0, 1)
    text = capsys.readouterr().out
    assert "parity-shallow" in text and "not measured: automata/depth-table.s5-deep (automaton left out: S5)" in text


def test_commands_that_a_room_brings_are_part_of_the_terminal(capsys):
    assert "Example:" in answer(capsys, "decode", "--help")
    assert "decode" in answer(capsys, "--help")
    assert call(["decode"]) == 2
