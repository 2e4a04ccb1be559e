"""C-RASP: the interpreter decides the languages, and refuses what is not C-RASP."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sandlab.circuits.expressivity.crasp import CRasp, all_words, first_difference
from sandlab.circuits.expressivity.crasp_programs import CRASP_LANGUAGES, crasp_names, crasp_program
from sandlab.errors import BadInput


def test_the_library_has_thirty_programs() -> None:
    assert len(crasp_names()) >= 30
    assert len({(language.letters, language.body) for language in CRASP_LANGUAGES.values()}) == len(crasp_names())


@pytest.mark.parametrize("name", crasp_names())
def test_each_program_decides_its_language(name: str) -> None:
    longest = 8 if len(CRASP_LANGUAGES[name].letters) == 2 else 6
    assert first_difference(crasp_program(name), CRASP_LANGUAGES[name].member, longest) is None


def test_answers_at_a_position_are_those_of_the_prefix() -> None:
    program = crasp_program("dyck-1")
    answers = program.run(np.array([[0, 1, 0, 0, 1, 1]]))[0].tolist()
    assert answers == [program.accepts("()(())"[:end]) for end in range(1, 7)]
    assert answers == [False, True, False, False, False, True]


def test_depth_and_length_are_counted() -> None:
    assert crasp_program("majority").depth == 1 and crasp_program("dyck-1").depth == 2
    assert crasp_program("subsequence-abab").depth == 4
    assert crasp_program("ends-in-one").operations == 0 < crasp_program("majority").operations


def test_no_single_comparison_of_counts_is_parity() -> None:
    """Parity is not expressible at all; here every program with one comparison and small weights is tried."""
    words = all_words(2, 5)
    truth = np.cumsum(words, -1) % 2 == 1
    for one, zero, rest in itertools.product(range(-3, 4), range(-3, 4), range(-5, 6)):
        text = f'letters = "01"\naccept = {one} * count(Q("1")) + {zero} * count(Q("0")) + {rest} >= 0'
        assert not np.array_equal(CRasp(text).run(words), truth)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ('accept = Q("0")', "alphabet"),
        ('letters = "01"\naccept = count(Q("1"))', "number"),
        ('letters = "01"\naccept = Q("2")', "letters"),
        ('letters = "01"\naccept = count(Q("1")) * count(Q("0")) > 1', "added"),
        ('letters = "01"\naccept = count(Q("1")) % 2 == 1', "added"),
        ('letters = "01"\naccept = here > 1', "defined"),
        ('letters = "01"\naccept = __import__("os")', "count"),
        ('letters = "01"\naccept = [1][0] > 0', "part of C-RASP"),
        ('letters = "01"\naccept = count(3) > 0', "true or false is needed"),
        ('letters = "01"\nprint("x")', "name = expression"),
        ('letters = "0', "cannot be read"),
    ],
)
def test_what_is_not_a_program_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        CRasp(text)
