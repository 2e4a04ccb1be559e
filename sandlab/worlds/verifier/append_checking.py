"""Reading test cases of list append: which are correct, where the first error is, whether a prefix can be completed."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

__all__ = [
    "CaseError",
    "CaseScore",
    "ParsedCase",
    "can_be_completed",
    "count_distinct",
    "find_error",
    "is_plain",
    "parse_cases",
    "score_cases",
]


class CaseError(Enum):
    """What is wrong first in a list of test cases."""

    LINE_WITHOUT_ASSERT = "line without assert"
    EXTRA_CONTENT_AFTER_TASK_COMPLETION = "extra content after the task"
    FUNCTION_NOT_TESTED = "the function is not tested"
    FUNCTION_CALL_NO_CLOSING_PARENTHESIS = "call without closing parenthesis"
    FUNCTION_CALL_SYNTAX_ERROR = "call is not Python"
    FUNCTION_CALL_VALUE_ERROR = "arguments are not literals"
    FUNCTION_CALL_UNKNOWN_VARIABLE = "arguments contain a variable"
    FIRST_ARGUMENT_TYPE_ERROR = "first argument is not a list"
    ONLY_ONE_ARGUMENT = "only one argument"
    MORE_THAN_TWO_ARGUMENTS = "more than two arguments"
    NO_ASSERTION_EQUALITY = "no =="
    EXPECTED_OUTPUT_NO_CLOSING_BRACKET = "result without closing bracket"
    EXPECTED_OUTPUT_SYNTAX_ERROR = "result is not Python"
    EXPECTED_OUTPUT_VALUE_ERROR = "result is not a literal"
    EXPECTED_OUTPUT_TYPE_ERROR = "result is not a list"
    EXPECTED_OUTPUT_UNDEFINED_VARIABLE = "result contains a variable"
    ASSERTION_FAILURE = "the assertion is false"
    FEWER_TEST_CASES_THAN_EXPECTED = "too few test cases"


@dataclass(frozen=True)
class ParsedCase:
    """A test case that could be read: the list, the item, and whether the stated result is list + [item]."""

    before: str
    item: str
    correct: bool


def parse_cases(text: str, name: str, limit: int = 8) -> list[ParsedCase]:
    """The first `limit` test cases of a completion.

    Semicolons and leading blanks are dropped; after the first readable case, the third line that is neither empty nor
    readable ends the reading. Botta, Li et al. 2025, rules of the released evaluation.
    """
    found: list[ParsedCase] = []
    unreadable = 0
    for line in text.split("\n"):
        line = line.replace(";", "").lstrip()
        if not line:
            continue
        case = _read(line, name)
        if case is not None:
            found.append(case)
        elif found:
            unreadable += 1
        if unreadable == 3 or len(found) == limit:
            break
    return found


def _read(line: str, name: str) -> ParsedCase | None:
    head = f"assert {name}("
    if not line.startswith(head):
        return None
    end = _closing(line, len(head) - 1)
    if end is None:
        return None
    equality = re.match(r"\s*==\s*", line[end + 1 :])
    if equality is None:
        return None
    try:
        arguments = ast.literal_eval(f"({line[len(head) : end]},)")
        result = ast.literal_eval(line[end + 1 + equality.end() :])
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    if len(arguments) != 2 or not isinstance(arguments[0], list):
        return None
    before, item = arguments
    return ParsedCase(repr(before), repr(item), result == [*before, item])


def _closing(line: str, opening: int) -> int | None:
    """Position of the bracket that closes the one at `opening`."""
    depth = 0
    for position in range(opening, len(line)):
        depth += (line[position] in "([") - (line[position] in ")]")
        if depth == 0:
            return position
    return None


@dataclass(frozen=True)
class CaseScore:
    """Distinct correct test cases, and their share of all that were requested."""

    distinct_correct: int
    requested: int

    @property
    def accuracy(self) -> float:
        return self.distinct_correct / self.requested


def score_cases(completions: Mapping[str, Sequence[str]], limit: int = 8) -> CaseScore:
    """The score of the completions for each name; duplicates (same list and item) count once per name."""
    found = [count_distinct(texts, [name] * len(texts), limit)[-1] for name, texts in completions.items()]
    return CaseScore(sum(found), limit * sum(map(len, completions.values())))


def count_distinct(texts: Sequence[str], names: Sequence[str], limit: int = 8) -> list[int]:
    """How many distinct correct test cases the first 1, 2, 3, … texts hold, per function name and added up."""
    seen: set[tuple[str, ParsedCase]] = set()
    counts = []
    for text, name in zip(texts, names):
        seen |= {(name, case) for case in parse_cases(text, name, limit) if case.correct}
        counts.append(len(seen))
    return counts


def find_error(text: str, name: str, cases: int = 8, *, lenient: bool = False) -> tuple[int, CaseError] | None:
    """Position of the first wrong character of a finished completion, and what is wrong there; None if nothing is.

    lenient   as the released parser: empty lines are passed over, blanks before a line and semicolons dropped, and
              blanks around == and between arguments are free
    """
    return _find_lenient(text, name, cases) if lenient else _find_strict(text, name, cases)


def _find_lenient(text: str, name: str, cases: int) -> tuple[int, CaseError] | None:
    start, number = 0, 0
    for line in text.split("\n"):
        bare = line.replace(";", "").strip()
        if bare and number == cases:
            return start, CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION
        if bare:
            wrong = _line_error(re.sub(r"\)\s*==\s*", ") == ", bare, count=1), name)
            if wrong is not None:
                return start + len(line) - len(line.lstrip()) + min(wrong[0], len(bare)), wrong[1]
            number += 1
        start += len(line) + 1
    return None if number == cases else (len(text), CaseError.FEWER_TEST_CASES_THAN_EXPECTED)


def _find_strict(text: str, name: str, cases: int) -> tuple[int, CaseError] | None:
    start = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if number == cases:
            return (start, CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION) if text[start:].strip() else None
        if number == len(lines) - 1 and not line:
            return start, CaseError.FEWER_TEST_CASES_THAN_EXPECTED
        wrong = _line_error(line, name)
        if wrong is not None:
            return start + wrong[0], wrong[1]
        start += len(line) + 1
    return None if len(lines) >= cases else (len(text), CaseError.FEWER_TEST_CASES_THAN_EXPECTED)


@lru_cache(maxsize=100_000)
def _line_error(line: str, name: str) -> tuple[int, CaseError] | None:
    for head, kind in (("assert ", CaseError.LINE_WITHOUT_ASSERT), (f"assert {name}(", CaseError.FUNCTION_NOT_TESTED)):
        if not line.startswith(head):
            return _difference(line, head), kind
    begin = len(f"assert {name}(")
    end = _closing(line, begin - 1)
    if end is None:
        return len(line), CaseError.FUNCTION_CALL_NO_CLOSING_PARENTHESIS
    arguments = line[begin:end]
    wrong = _literal_error(f"({arguments},)", _CALL)
    if wrong is not None:
        return begin + max(0, min(wrong[0] - 1, len(arguments))), wrong[1]
    values = ast.literal_eval(f"({arguments},)")
    if len(values) == 1:
        return end, CaseError.ONLY_ONE_ARGUMENT
    if len(values) > 2:
        return end, CaseError.MORE_THAN_TWO_ARGUMENTS
    if not isinstance(values[0], list):
        return begin, CaseError.FIRST_ARGUMENT_TYPE_ERROR
    if not line.startswith(" == ", end + 1):
        return end + 1 + _difference(line[end + 1 :], " == "), CaseError.NO_ASSERTION_EQUALITY
    return _result_error(line, end + 5, [*values[0], values[1]])


_CALL = (
    CaseError.FUNCTION_CALL_SYNTAX_ERROR,
    CaseError.FUNCTION_CALL_UNKNOWN_VARIABLE,
    CaseError.FUNCTION_CALL_VALUE_ERROR,
)
_RESULT = (
    CaseError.EXPECTED_OUTPUT_SYNTAX_ERROR,
    CaseError.EXPECTED_OUTPUT_UNDEFINED_VARIABLE,
    CaseError.EXPECTED_OUTPUT_VALUE_ERROR,
)


def _result_error(line: str, begin: int, expected: list[object]) -> tuple[int, CaseError] | None:
    stated = line[begin:]
    if stated.startswith("[") and _closing(stated, 0) is None:
        shared = _difference(stated, repr(expected))
        # Up to the missing bracket the result may be right: then the error is the end of the line.
        return begin + shared, CaseError.EXPECTED_OUTPUT_NO_CLOSING_BRACKET
    wrong = _literal_error(stated, _RESULT)
    if wrong is not None:
        return begin + max(0, min(wrong[0], len(stated))), wrong[1]
    value = ast.literal_eval(stated)
    if not isinstance(value, list):
        return begin, CaseError.EXPECTED_OUTPUT_TYPE_ERROR
    if value != expected:
        return begin + _difference(stated, repr(expected)), CaseError.ASSERTION_FAILURE
    return None


def _literal_error(source: str, kinds: tuple[CaseError, CaseError, CaseError]) -> tuple[int, CaseError] | None:
    """Where `source` is not Python, contains a variable, or is not a literal."""
    try:
        tree = ast.parse(source.strip() or "(", mode="eval")
    except SyntaxError as problem:
        return (problem.offset or 1) - 1, kinds[0]
    except ValueError:
        return 0, kinds[0]
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if names:
        return names[0].col_offset, kinds[1]
    try:
        ast.literal_eval(source.strip())
    except (ValueError, TypeError):
        return 0, kinds[2]
    return None


def _difference(text: str, expected: str) -> int:
    """The first position at which two texts differ."""
    for position, (one, other) in enumerate(zip(text, expected)):
        if one != other:
            return position
    return min(len(text), len(expected))


_NUMBER = r"(?:0|[1-9]\d*)"
_HEAD = re.compile(rf"\[(?P<entries>(?:{_NUMBER}(?:, {_NUMBER})*)?)\], (?P<item>{_NUMBER})\) == ")
# From every state of such a head one of these leads to its end: what none of them completes, nothing does.
_ENDINGS: tuple[str, ...] = (
    "[], 0) == ",
    "], 0) == ",
    " 0], 0) == ",
    "0], 0) == ",
    ", 0) == ",
    " 0) == ",
    "0) == ",
    ") == ",
    " == ",
)
_ENDINGS += ("== ", "= ", " ", "")


def can_be_completed(text: str, name: str, cases: int = 8) -> bool:
    """Whether a prefix of a completion can still become `cases` correct lines in the documents' style.

    What follows the last line is not judged. This is the exact process verifier of the task; the lines that it speaks
    about are those of `is_plain`: lists of whole numbers, written as in the documents.
    """
    lines = text.split("\n")
    if len(lines) > cases:
        return all(is_plain(line, name) for line in lines[:cases])
    return all(is_plain(line, name) for line in lines[:-1]) and _line_completable(lines[-1], name)


@lru_cache(maxsize=100_000)
def is_plain(line: str, name: str) -> bool:
    """Whether a line is a correct test case of whole numbers in the documents' style."""
    return line.endswith("]") and _line_completable(line, name) and _line_error(line, name) is None


def _line_completable(line: str, name: str) -> bool:
    head = f"assert {name}("
    if len(line) <= len(head):
        return head.startswith(line)
    if not line.startswith(head):
        return False
    rest = line[len(head) :]
    match = _HEAD.match(rest)
    if match is None:
        return any(_HEAD.fullmatch(rest + ending) for ending in _ENDINGS)
    entries = match["entries"].split(", ") if match["entries"] else []
    expected = "[" + ", ".join([*entries, match["item"]]) + "]"
    return expected.startswith(rest[match.end() :])
