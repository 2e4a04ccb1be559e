"""Reading test cases of list append: which are right, where the first error is, can a beginning still become right?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

__all__ = ["CaseError", "CaseScore", "ParsedCase", "can_be_completed", "find_error", "parse_cases", "score_cases"]


class CaseError(Enum):
    """What is wrong first in a list of test cases."""

    LINE_WITHOUT_ASSERT = "line without assert"
    EXTRA_CONTENT_AFTER_TASK_COMPLETION = "extra content after the task"
    FUNCTION_NOT_TESTED = "the function is not tested"
    FUNCTION_CALL_NO_CLOSING_PARENTHESIS = "call without closing parenthesis"
    FUNCTION_CALL_SYNTAX_ERROR = "call is no Python"
    FUNCTION_CALL_VALUE_ERROR = "arguments are no literals"
    FUNCTION_CALL_UNKNOWN_VARIABLE = "arguments have a variable"
    FIRST_ARGUMENT_TYPE_ERROR = "first argument is no list"
    ONLY_ONE_ARGUMENT = "only one argument"
    MORE_THAN_TWO_ARGUMENTS = "more than two arguments"
    NO_ASSERTION_EQUALITY = "no =="
    EXPECTED_OUTPUT_NO_CLOSING_BRACKET = "result without closing bracket"
    EXPECTED_OUTPUT_SYNTAX_ERROR = "result is no Python"
    EXPECTED_OUTPUT_VALUE_ERROR = "result is no literal"
    EXPECTED_OUTPUT_TYPE_ERROR = "result is no list"
    EXPECTED_OUTPUT_UNDEFINED_VARIABLE = "result has a variable"
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

    Semicolons and leading blanks are dropped; once a case was read, the third line that is neither empty nor readable
    ends the reading. Botta, Li et al. 2025, rules of the released evaluation.
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
    for place in range(opening, len(line)):
        depth += (line[place] in "([") - (line[place] in ")]")
        if depth == 0:
            return place
    return None


@dataclass(frozen=True)
class CaseScore:
    """Distinct correct test cases, and their share of all that were asked for."""

    distinct_correct: int
    asked: int

    @property
    def accuracy(self) -> float:
        return self.distinct_correct / self.asked


def score_cases(completions: Mapping[str, Sequence[str]], limit: int = 8) -> CaseScore:
    """name → completions: duplicates (same list and item) count once per name, over all its completions."""
    total, asked = 0, 0
    for name, texts in completions.items():
        cases = {case for text in texts for case in parse_cases(text, name, limit) if case.correct}
        total += len(cases)
        asked += limit * len(texts)
    return CaseScore(total, asked)


def find_error(text: str, name: str, cases: int = 8) -> tuple[int, CaseError] | None:
    """Position of the first wrong character of a finished completion, and what is wrong there; None if nothing is."""
    place = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        rest = text[place:]
        if number == cases:
            return (place, CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION) if rest.strip() else None
        if number == len(lines) - 1 and not line:
            return place, CaseError.FEWER_TEST_CASES_THAN_EXPECTED
        wrong = _line_error(line, name)
        if wrong is not None:
            return place + wrong[0], wrong[1]
        place += len(line) + 1
    done = len(lines) >= cases
    return None if done else (len(text), CaseError.FEWER_TEST_CASES_THAN_EXPECTED)


@lru_cache(maxsize=100_000)
def _line_error(line: str, name: str) -> tuple[int, CaseError] | None:
    for head, kind in (("assert ", CaseError.LINE_WITHOUT_ASSERT), (f"assert {name}(", CaseError.FUNCTION_NOT_TESTED)):
        if not line.startswith(head):
            return _departure(line, head), kind
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
        return end + 1 + _departure(line[end + 1 :], " == "), CaseError.NO_ASSERTION_EQUALITY
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
        shared = _departure(stated, repr(expected))
        # Up to the missing bracket the result may be right: then the error is the end of the line.
        return begin + shared, CaseError.EXPECTED_OUTPUT_NO_CLOSING_BRACKET
    wrong = _literal_error(stated, _RESULT)
    if wrong is not None:
        return begin + max(0, min(wrong[0], len(stated))), wrong[1]
    value = ast.literal_eval(stated)
    if not isinstance(value, list):
        return begin, CaseError.EXPECTED_OUTPUT_TYPE_ERROR
    if value != expected:
        return begin + _departure(stated, repr(expected)), CaseError.ASSERTION_FAILURE
    return None


def _literal_error(source: str, kinds: tuple[CaseError, CaseError, CaseError]) -> tuple[int, CaseError] | None:
    """Where `source` is no Python, has a variable, or is no literal."""
    try:
        tree = ast.parse(source.strip() or "(", mode="eval")
    except (SyntaxError, ValueError) as problem:
        return int(getattr(problem, "offset", 1) or 1) - 1, kinds[0]
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if names:
        return names[0].col_offset, kinds[1]
    try:
        ast.literal_eval(source.strip())
    except (ValueError, TypeError):
        return 0, kinds[2]
    return None


def _departure(text: str, wanted: str) -> int:
    """The first place at which `text` is not `wanted`."""
    for place, (one, other) in enumerate(zip(text, wanted)):
        if one != other:
            return place
    return min(len(text), len(wanted))


_HEAD = re.compile(r"\[(?:(?P<entries>\d(?:, \d)*))?\], (?P<item>\d)\) == ")


def can_be_completed(text: str, name: str, cases: int = 8) -> bool:
    """Whether a beginning of a completion can still become `cases` correct lines (written in the documents' style).

    What follows the last line is not judged. This is the exact process verifier of the task.
    """
    lines = text.split("\n")
    if len(lines) > cases:
        return all(_line_error(line, name) is None for line in lines[:cases])
    return all(_line_error(line, name) is None for line in lines[:-1]) and _alive(lines[-1], name)


def _alive(line: str, name: str) -> bool:
    head = f"assert {name}("
    if len(line) <= len(head):
        return head.startswith(line)
    if not line.startswith(head):
        return False
    rest = line[len(head) :]
    match = _HEAD.match(rest)
    if match is None:
        return _head_alive(rest)
    entries = match["entries"].split(", ") if match["entries"] else []
    expected = "[" + ", ".join([*entries, match["item"]]) + "]"
    return expected.startswith(rest[match.end() :])


def _head_alive(rest: str) -> bool:
    """Whether "[2, 5], 7) == " can still come out of this beginning."""
    end = rest.find("]")
    if end < 0:
        return re.fullmatch(r"(?:\[(?:\d(?:, \d)*(?:,|, )?)?)?", rest) is not None
    if re.fullmatch(r"\[(?:\d(?:, \d)*)?\]", rest[: end + 1]) is None:
        return False
    tail = rest[end + 1 :]
    return re.fullmatch(r"(?:, ?)?|, \d(?:\)(?: |  ?=|  ?==| =| ==)?)?", tail) is not None and (
        len(tail) < 4 or ") == ".startswith(tail[3:])
    )


def completions_by_name(names: Iterable[str], texts: Sequence[str], each: int) -> dict[str, list[str]]:
    """Texts in blocks of `each` per name."""
    return {name: list(texts[place * each : (place + 1) * each]) for place, name in enumerate(names)}
