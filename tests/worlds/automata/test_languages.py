import itertools
import re

import pytest

import sandlab as sl

EXPRESSIONS = [
    "(abab)*",
    "a|b",
    "(a|b)*abb",
    "a*b+a?",
    "(ab|ba){2,3}",
    "a{2}b{1,}",
    "[ab]c[a-c]",
    "(a.)*c?",
    "((a|bb)*c)+",
    "",
    "a?b?",
]


@pytest.mark.gate(4)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_automaton_accepts_what_the_standard_library_matches(expression):
    machine = sl.worlds.from_regex(expression, alphabet="abc")
    pattern = re.compile(expression)
    for size in range(7):
        for word in map("".join, itertools.product("abc", repeat=size)):
            assert machine.accepts(word) == bool(pattern.fullmatch(word)), word


def test_the_automaton_is_minimal():
    assert sl.worlds.from_regex("(abab)*").states == 5
    assert sl.worlds.from_regex("(a|b)*").states == 1
    # The third letter from the end needs 2³ states.
    assert sl.worlds.from_regex("(a|b)*a(a|b)(a|b)").states == 8


def test_abab_by_expression_is_the_named_automaton():
    named, built = sl.worlds.Abab(), sl.worlds.from_regex("(abab)*")
    assert len(named.semigroup()) == len(built.semigroup())
    for word in map("".join, itertools.product("ab", repeat=9)):
        assert named.accepts(word) == built.accepts(word)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("(ab", "a '(' that is never closed at position 0"),
        ("ab)", "unmatched ')' at position 2"),
        ("*a", "'*' with nothing to repeat"),
        ("a{2", "missing '}'"),
        ("a{3,1}", "ends before it begins"),
        ("[ab", "a '[' that is never closed"),
        ("[b-a]", "runs backwards"),
        ("a\\", "nothing after it"),
        ("a{999}", "at most 200"),
    ],
)
def test_what_does_not_parse_is_refused_with_its_place(expression, words):
    with pytest.raises(sl.BadInput, match=r"^[^\n]+$") as refusal:
        sl.worlds.from_regex(expression)
    assert words in str(refusal.value) and "does not parse" in str(refusal.value)


def test_special_characters_can_be_letters():
    machine = sl.worlds.from_regex(r"\(\*\)")
    assert machine.accepts("(*)") and machine.letters == ["(", ")", "*"]
