"""Compiled C-RASP programs equal their interpreter: on every word of up to ten letters, and on long random ones."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.circuits.expressivity.crasp import CRasp, all_words
from sandlab.circuits.expressivity.crasp_compiler import compile_crasp, run_compiled
from sandlab.circuits.expressivity.crasp_programs import crasp_names, crasp_program


def same(program: CRasp, words: torch.Tensor, length: int) -> bool:
    model = compile_crasp(program, length)
    parts = [torch.as_tensor(program.run(part.numpy())) == run_compiled(model, part) for part in words.split(8192)]
    return all(bool(part.all()) for part in parts)


def words_to_ten() -> list:
    """Length ten for every program; in the gate those over three letters (59 049 words) go to eight."""
    three = {name for name in crasp_names() if len(crasp_program(name).letters) > 2}
    slow = [pytest.param(name, 10, marks=pytest.mark.slow if name in three else ()) for name in crasp_names()]
    return slow + [(name, 8) for name in sorted(three)]


@pytest.mark.parametrize(("name", "length"), words_to_ten())
def test_every_word_of_up_to_ten_letters_gets_the_interpreters_answer(name: str, length: int) -> None:
    program = crasp_program(name)
    assert same(program, torch.as_tensor(all_words(len(program.letters), length)), length)


@pytest.mark.gate(12)
@pytest.mark.parametrize("name", crasp_names())
def test_long_random_words_get_the_interpreters_answer(name: str) -> None:
    program = crasp_program(name)
    size, draw = len(program.letters), sl.rng(0)
    even = torch.randint(0, size, (24, 200), generator=draw)
    rare = (torch.rand(24, 200, generator=draw) < 0.03).long()
    runs = torch.arange(200).mul(size).div(200, rounding_mode="floor").expand(1, 200)
    assert same(program, torch.cat([even, rare, size - 1 - rare, runs]), 200)


def test_choices_with_constants_and_nested_ones_are_compiled() -> None:
    text = """
letters = "ab"
a = count(Q("a"))
b = count(Q("b"))
larger = a + 1 if a >= b else b - 2
nested = larger if Q("b") else 3 - larger
accept = nested > 2 and not nested == 4
"""
    assert same(CRasp(text), torch.as_tensor(all_words(2, 10)), 10)


def test_the_depth_of_the_transformer_follows_the_nesting_of_counts() -> None:
    layers = {name: compile_crasp(crasp_program(name), 20).config.layers for name in ("majority", "dyck-1", "anbn")}
    assert layers["majority"] == 1 and 2 <= layers["dyck-1"] <= 4
    assert compile_crasp(crasp_program("majority"), 20).config.positions == "none"
