"""Whether a value has the type that an annotation speaks of, and the annotation in words: what the door asks."""

from __future__ import annotations

import collections.abc
import inspect
import io
import math
import os
import re
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from sandlab.errors import shown

__all__ = [
    "PLAIN",
    "TYPES",
    "VALUES",
    "Hint",
    "Plan",
    "fits",
    "in_words",
    "is_open",
    "is_plain",
    "is_simple",
    "refusal",
]

Hint: TypeAlias = Any
"""An annotation: a class, a union, a generic such as `list[int]`. No type of the typing module covers them all."""

Plan: TypeAlias = list[tuple[str, Hint, bool]]
"""For each parameter its annotation, and whether that is a plain one."""

VALUES = (ValueError, IndexError, OverflowError, ZeroDivisionError, RuntimeError, MemoryError, UnicodeError)
TYPES = (TypeError, AttributeError, KeyError, AssertionError, NotImplementedError)
_PLAIN_MODULES = ("builtins", "numpy", "torch", "decimal", "fractions", "_io")
_LONGEST_NAME, _LONGEST_PATH = 255, 4095  # bytes that file systems take
_LARGEST = 2**63  # whole numbers beyond 64 bits are no size, count or seed


def fits(hint: Hint, value: object) -> bool:
    """Whether a value has the type of an annotation; what an annotation leaves open fits always."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if Path in inside and isinstance(value, str):
            return _names_a_file(value)
        return any(fits(option, value) for option in inside)
    if origin is typing.Literal:
        return any(type(value) is type(option) and value == option for option in inside)
    if origin is typing.Annotated:
        return fits(inside[0], value)
    if hint in PLAIN:
        return PLAIN[hint](value)
    if _is_function(hint):
        return callable(value)
    if origin is type:
        return isinstance(value, type)
    if origin is not None:
        return _holds(origin, inside, value)
    if is_open(hint):
        return True
    return _is_instance(value, hint)


def in_words(hint: Hint) -> str:
    """What an annotation allows, for a sentence."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(in_words(option) for option in inside))
    if origin is typing.Literal:
        return "one of " + ", ".join(map(repr, inside))
    if hint in _WORDS:
        return _WORDS[hint]
    if _is_function(hint):
        return "a function"
    if origin is not None and isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        return "a dictionary"
    if origin is not None and inside:
        kinds = dict.fromkeys(in_words(kind) for kind in inside if kind is not Ellipsis)
        return f"a list of {' and '.join(kinds)}"
    if hasattr(hint, "dims"):
        return f"a tensor {hint.__name__}"
    return f"a {getattr(hint, '__name__', hint)}"


def is_simple(hint: Hint) -> bool:
    """Whether the annotation speaks of plain values alone: these are checked at every call."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return all(is_simple(option) for option in typing.get_args(hint))
    return hint in (bool, int, float, type(None), None) or typing.get_origin(hint) is typing.Literal


def is_plain(value: object) -> bool:
    """Whether a value is a number, a word, a list, an array or the like: not of a class of ours or of the user's."""
    return type(value).__module__.partition(".")[0] in _PLAIN_MODULES


def refusal(field: str, hint: Hint, value: object) -> str:
    """The sentence with which a value is refused that an annotation excludes."""
    kind = f"{type(value).__name__} " if isinstance(hint, type) and hint not in PLAIN else ""
    text = f"{field} must be {in_words(hint)}, got {kind}{shown(value)}"
    if isinstance(value, (str, Path)) and Path in (hint, *typing.get_args(hint)):
        return f"{text}: the names of files have at most 255 bytes, paths at most 4095, and no control characters"
    if isinstance(value, type) and isinstance(hint, type) and issubclass(value, hint):
        return f"{text}: {value.__name__}(…) makes one of the class"
    generator = getattr(hint, "__name__", "") == "Generator"
    if hint is float and type(value) is int:
        return f"{text}: so large a number is written as {float(value):g}" if abs(value) < 10**308 else text
    return text + (": use rng=sl.rng(0)" if generator else "")


def _holds(origin: Hint, inside: tuple[Hint, ...], value: object) -> bool:
    """Containers: their kind and, of lists, tuples and dictionaries, every item."""
    if not isinstance(origin, type):
        return True
    if issubclass(origin, collections.abc.Mapping):
        if not isinstance(value, Mapping):
            return False
        return len(inside) != 2 or all(fits(inside[0], k) and fits(inside[1], v) for k, v in value.items())
    if origin in (tuple, list) or origin.__module__ == "collections.abc":
        return _is_row(origin, inside, value)
    return isinstance(value, origin)


def _is_row(origin: Hint, inside: tuple[Hint, ...], value: object) -> bool:
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        return False
    if getattr(value, "ndim", 1) == 0:  # a tensor of one number has __iter__ and nothing to iterate over
        return False
    if not inside:
        return True
    fixed = origin is tuple and Ellipsis not in inside
    if not isinstance(value, (tuple, list, set, frozenset)):
        if fixed and (isinstance(value, io.IOBase) or getattr(value, "__len__", lambda: len(inside))() != len(inside)):
            return False
        return not (_is_function(inside[0]) and _holds_no_functions(value))
    if fixed:
        return len(value) == len(inside) and all(map(fits, inside, value))
    return all(fits(inside[0], item) for item in value)


def _is_function(hint: Hint) -> bool:
    return collections.abc.Callable in (hint, typing.get_origin(hint))


def _holds_no_functions(value: object) -> bool:
    """Arrays and ranges hold numbers, open files words."""
    return isinstance(value, range) or type(value).__module__.partition(".")[0] in ("numpy", "torch", "_io")


def is_open(hint: Hint) -> bool:
    """Whether an annotation does not say what a value must be."""
    return hint in (Any, object, inspect.Parameter.empty) or not isinstance(hint, type) or _is_protocol(hint)


def _is_protocol(hint: Hint) -> bool:
    return bool(getattr(hint, "_is_protocol", False))


def _is_instance(value: object, kind: type) -> bool:
    try:
        return isinstance(value, kind)
    except Exception:  # annotations of shapes that need the others
        return True


def _is_whole(value: object) -> bool:
    return _number_of(value, "iu", (int,)) and -_LARGEST <= int(value) < _LARGEST  # type: ignore[call-overload]


def _is_real(value: object) -> bool:
    if not _number_of(value, "iuf", (int, float)):
        return False
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:  # an array of it would hold objects, not numbers
        return False
    try:
        return not math.isnan(float(value))  # type: ignore[arg-type]
    except OverflowError:
        return False


def _number_of(value: object, kinds: str, plain: tuple[type, ...]) -> bool:
    """A Python number, or one of numpy's (a scalar, not an array)."""
    if isinstance(value, bool):
        return False
    scalar = type(value).__module__ == "numpy" and not hasattr(value, "__len__") and getattr(value, "ndim", 1) == 0
    return isinstance(value, plain) or (scalar and value.dtype.kind in kinds)  # type: ignore[attr-defined]


def _names_a_file(value: object) -> bool:
    """Names are printed on terminals, so that none may hold control characters; and no file has so long a name."""
    try:
        name = os.fsencode(str(value))
    except UnicodeError:
        return False
    short = len(name) <= _LONGEST_PATH and all(len(part) <= _LONGEST_NAME for part in name.split(b"/"))
    return short and not re.search(rb"[\x00-\x1f\x7f]", name)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value[:10_000])


PLAIN: dict[Hint, Callable[[object], bool]] = {
    bool: lambda value: isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"),
    int: _is_whole,
    float: _is_real,
    str: _is_text,
    None: lambda value: value is None,
    type(None): lambda value: value is None,
    Path: lambda value: isinstance(value, Path) and _names_a_file(value),
    tuple: lambda value: _is_row(tuple, (), value),
    list: lambda value: _is_row(list, (), value),
}


_WORDS: dict[Hint, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a word",
    None: "None",
    type(None): "None",
    Path: "the path of a file",
    tuple: "a list",
    list: "a list",
}
