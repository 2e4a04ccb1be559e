"""Input validation: one sentence that says what was given, what is allowed and what to try."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import TypeVar

__all__ = ["BadInput", "choice", "flag", "integer", "nearest", "number", "require", "shown"]


T = TypeVar("T")


class BadInput(ValueError):
    """A parameter, name or file that cannot be used. The terminal prints it without a traceback, exit code 2."""


def require(condition: bool, field: str, value: object, allowed: str, hint: str = "") -> None:
    """Refuse `value` for `field` unless `condition` holds: "order must be at least 1, got 0: hint"."""
    if not condition:
        raise BadInput(_refusal(field, value, allowed, hint))


def integer(field: str, value: object, low: int | None = None, high: int | None = None, hint: str = "") -> int:
    """Check that `value` is a whole number in [low, high] and return it."""
    if isinstance(value, int) and not isinstance(value, bool) and _inside(value, low, high):
        return value
    raise BadInput(_refusal(field, value, "a whole number" + _range_in_words(low, high), hint))


def number(field: str, value: object, low: float | None = None, high: float | None = None, hint: str = "") -> float:
    """Check that `value` is a finite real number in [low, high] and return it."""
    try:
        real = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:  # a whole number beyond the range of floats
        real = math.inf
    if math.isfinite(real) and _inside(real, low, high):
        return real
    raise BadInput(_refusal(field, value, "a number" + _range_in_words(low, high), hint))


def choice(field: str, value: T, allowed: Iterable[object], hint: str = "") -> T:
    """Check that `value` is one of `allowed` and return it; a near miss is suggested."""
    options = list(allowed)
    if any(type(value) is type(option) and value == option for option in options):
        return value
    suggestion = hint or (nearest(value, [str(option) for option in options]) if isinstance(value, str) else "")
    listed = ", ".join(repr(option) for option in options)
    raise BadInput(_refusal(field, value, f"one of {listed}", suggestion))


def flag(field: str, value: object, hint: str = "") -> bool:
    """Check that `value` is True or False and return it: the word "false" is not False."""
    if isinstance(value, bool):
        return value
    raise BadInput(_refusal(field, value, "True or False", hint))


def nearest(name: str, names: Iterable[str]) -> str:
    """ "did you mean 'x'?" for the closest of `names`, or an empty string."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.55)
    return f"did you mean {close[0]!r}?" if close else ""


def _refusal(field: str, value: object, allowed: str, hint: str) -> str:
    return f"{field} must be {allowed}, got {shown(value)}" + (f": {hint}" if hint else "")


def shown(value: object) -> str:
    """The value as it was given, cut where it is long."""
    try:
        text = repr(value)
    except Exception as problem:  # whole numbers of thousands of digits, objects that cannot describe themselves
        text = f"a {type(value).__name__} that cannot be written ({type(problem).__name__})"
    text = "".join(letter if letter.isprintable() else " " for letter in text[:201])  # nothing moves the cursor
    return text if len(text) <= 200 else f"{text[:200]}…"


def _inside(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _range_in_words(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" between {low} and {high}"
    if low is not None:
        return f" of at least {low}"
    return f" of at most {high}" if high is not None else ""
