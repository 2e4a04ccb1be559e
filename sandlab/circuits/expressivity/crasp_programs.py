"""A library of C-RASP programs, with the languages they decide."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from sandlab.circuits.expressivity.crasp import CRasp
from sandlab.errors import BadInput, nearest

__all__ = ["CRASP_LANGUAGES", "Language", "crasp_names", "crasp_program"]


@dataclass(frozen=True)
class Language:
    """A language with the C-RASP program that decides it.

    letters   the alphabet
    body      the program without its first line
    member    whether a word belongs to the language, computed in another way
    """

    letters: str
    body: str
    member: Callable[[str], bool]


def _prefixes(word: str) -> list[str]:
    return [word[:end] for end in range(1, len(word) + 1)]


def _balances(word: str, up: str) -> list[int]:
    return [2 * prefix.count(up) - len(prefix) for prefix in _prefixes(word)]


def _subsequence(word: str, wanted: str) -> bool:
    rest = iter(word)
    return all(letter in rest for letter in wanted)


def _pattern(text: str) -> Callable[[str], bool]:
    return lambda word: re.fullmatch(text, word) is not None


ONES = 'ones = count(Q("1"))\n'
BOTH = ONES + 'zeros = count(Q("0"))\n'
AB = 'a = count(Q("a"))\nb = count(Q("b"))\n'
ABC = AB + 'c = count(Q("c"))\n'
BRACKETS = 'opened = count(Q("("))\nclosed = count(Q(")"))\n'

CRASP_LANGUAGES: dict[str, Language] = {
    "majority": Language("01", BOTH + "accept = ones > zeros", lambda w: 2 * w.count("1") > len(w)),
    "tie": Language("01", BOTH + "accept = ones == zeros", lambda w: 2 * w.count("1") == len(w)),
    "unequal": Language("01", BOTH + "accept = ones != zeros", lambda w: 2 * w.count("1") != len(w)),
    "all-ones": Language("01", 'accept = count(Q("0")) == 0', lambda w: "0" not in w),
    "some-one": Language("01", ONES + "accept = ones >= 1", lambda w: "1" in w),
    "three-ones": Language("01", ONES + "accept = ones >= 3", lambda w: w.count("1") >= 3),
    "exactly-two-ones": Language("01", ONES + "accept = ones == 2", lambda w: w.count("1") == 2),
    "at-most-two-ones": Language("01", ONES + "accept = ones <= 2", lambda w: w.count("1") <= 2),
    "one-to-three-ones": Language("01", ONES + "accept = 1 <= ones <= 3", lambda w: 1 <= w.count("1") <= 3),
    "two-thirds": Language("01", BOTH + "accept = ones >= 2 * zeros", lambda w: 3 * w.count("1") >= 2 * len(w)),
    "weighted": Language("01", BOTH + "accept = 2 * ones > 3 * zeros + 1", lambda w: 5 * w.count("1") > 3 * len(w) + 1),
    "near-tie": Language(
        "01", BOTH + "accept = -2 <= ones - zeros <= 2", lambda w: abs(2 * w.count("1") - len(w)) <= 2
    ),
    "ends-in-one": Language("01", 'accept = Q("1")', lambda w: w[-1] == "1"),
    "begins-with-one": Language(
        "01", 'first = count(True) == 1\naccept = count(first and Q("1")) == 1', lambda w: w[0] == "1"
    ),
    "second-is-one": Language(
        "01", 'second = count(True) == 2\naccept = count(second and Q("1")) == 1', lambda w: w[1:2] == "1"
    ),
    "ends-as-it-begins": Language(
        "01",
        'first = count(True) == 1\none = count(first and Q("1")) == 1\n'
        'accept = (one and Q("1")) or (not one and Q("0"))',
        lambda w: w[0] == w[-1],
    ),
    "five-letters": Language("01", "accept = count(True) == 5", lambda w: len(w) == 5),
    "at-least-four-letters": Language("01", "accept = count(True) >= 4", lambda w: len(w) >= 4),
    "majority-of-prefixes": Language(
        "01", BOTH + "led = count(ones > zeros)\naccept = 2 * led > count(True)",
        lambda w: 2 * sum(value > 0 for value in _balances(w, "1")) > len(w),
    ),
    "always-ahead": Language(
        "01", BOTH + "accept = count(ones <= zeros) == 0", lambda w: min(_balances(w, "1")) > 0
    ),
    "never-tied": Language("01", BOTH + "accept = count(ones == zeros) == 0", lambda w: 0 not in _balances(w, "1")),
    "tied-once": Language(
        "01", BOTH + "accept = count(ones == zeros) == 1", lambda w: _balances(w, "1").count(0) == 1
    ),
    "narrow-walk": Language(
        "01", BOTH + "out = count(ones - zeros > 2 or zeros - ones > 2)\naccept = out == 0",
        lambda w: max(map(abs, _balances(w, "1"))) <= 2,
    ),
    "own-kind-thrice": Language(
        "01", BOTH + 'mine = ones if Q("1") else zeros\naccept = mine >= 3', lambda w: w.count(w[-1]) >= 3
    ),
    "leader-by-three": Language(
        "01", BOTH + "lead = ones - zeros if ones > zeros else zeros - ones\naccept = lead >= 3",
        lambda w: abs(2 * w.count("1") - len(w)) >= 3,
    ),
    "a-then-b": Language(
        "ab", AB + 'accept = count(Q("a") and b >= 1) == 0', _pattern("a*b*")
    ),
    "a-b-a": Language(
        "ab", AB + 'back = count(Q("a") and b >= 1)\naccept = count(Q("b") and back >= 1) == 0', _pattern("a*b*a*")
    ),
    "anbn": Language(
        "ab", AB + 'accept = count(Q("a") and b >= 1) == 0 and a == b',
        lambda w: _pattern("a*b*")(w) and 2 * w.count("a") == len(w),
    ),
    "subsequence-aba": Language(
        "ab", AB + 'ab = count(Q("b") and a >= 1)\naccept = count(Q("a") and ab >= 1) >= 1',
        lambda w: _subsequence(w, "aba"),
    ),
    "subsequence-abab": Language(
        "ab",
        AB + 'ab = count(Q("b") and a >= 1)\naba = count(Q("a") and ab >= 1)\naccept = count(Q("b") and aba >= 1) >= 1',
        lambda w: _subsequence(w, "abab"),
    ),
    "dyck-1": Language(
        "()", BRACKETS + "broken = count(opened < closed)\naccept = broken == 0 and opened == closed",
        lambda w: min(_balances(w, "(")) >= 0 and _balances(w, "(")[-1] == 0,
    ),
    "dyck-1-prefix": Language(
        "()", BRACKETS + "accept = count(opened < closed) == 0", lambda w: min(_balances(w, "(")) >= 0
    ),
    "dyck-1-depth-2": Language(
        "()",
        BRACKETS + "broken = count(opened < closed or opened > closed + 2)\naccept = broken == 0 and opened == closed",
        lambda w: all(0 <= value <= 2 for value in _balances(w, "(")) and _balances(w, "(")[-1] == 0,
    ),
    "abc-in-order": Language(
        "abc", ABC + 'accept = count(Q("a") and b + c >= 1) == 0 and count(Q("b") and c >= 1) == 0', _pattern("a*b*c*")
    ),
    "anbncn": Language(
        "abc",
        ABC + 'ordered = count(Q("a") and b + c >= 1) == 0 and count(Q("b") and c >= 1) == 0\n'
        "accept = ordered and a == b and b == c",
        lambda w: _pattern("a*b*c*")(w) and w.count("a") == w.count("b") == w.count("c"),
    ),
    "plurality": Language(
        "abc", ABC + "accept = a > b and a > c", lambda w: w.count("a") > max(w.count("b"), w.count("c"))
    ),
}  # fmt: skip


def crasp_names() -> list[str]:
    """The programs of the library."""
    return list(CRASP_LANGUAGES)


@cache
def crasp_program(name: str) -> CRasp:
    """A program of the library: `crasp_program("dyck-1")`."""
    if name not in CRASP_LANGUAGES:
        raise BadInput(f"no C-RASP program called {name!r}: {nearest(name, CRASP_LANGUAGES) or crasp_names()}")
    language = CRASP_LANGUAGES[name]
    return CRasp(f'letters = "{language.letters}"\n{language.body}', name)
