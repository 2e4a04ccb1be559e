"""The terminal's doors to the rooms: compiled automata, and commands that rooms bring themselves."""

from __future__ import annotations

import json

import pytest
import torch

import sandlab as sl
from sandlab.cli import call


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compile", "(ab"], "never closed"),
        (["compile", "(ab)*", "--method", "skan"], "did you mean 'scan'"),
        (["compile", "(ab)*", "--length", "0"], "length must be"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(capsys, arguments, words):
    text = answer(capsys, *arguments, code=2)
    assert words in text
    assert "Traceback" not in text


def test_commands_that_a_room_brings_are_part_of_the_terminal(capsys):
    assert "Example:" in answer(capsys, "decode", "--help")
    assert "decode" in answer(capsys, "--help")
    assert call(["decode"]) == 2
