"""The door: one validator that reads what is allowed from the annotations, for everything that users call.

`@checked` refuses at once arguments that the signature does not have, flags that are not flags and numbers that are not
numbers. What goes wrong further inside is explained by the first argument that does not fit its annotation. What no
memory can hold is refused with the number of bytes.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import errno
import functools
import inspect
import io
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from sandlab._fitting import TYPES, VALUES, Hint, Plan, fits, in_words, is_plain, is_simple, refusal
from sandlab._memory import available_bytes, refuse_beyond_memory, sized
from sandlab.errors import BadInput, nearest, shown

__all__ = ["available_bytes", "checked", "checked_types", "fits", "in_words", "refuse_beyond_memory", "sized"]

Thing = TypeVar("Thing")
Function: TypeAlias = Callable[..., Any]
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
# Sizes of which everything is made one by one, at some length.
_SMALL = ("positions", "heads", "types", "clauses", "hops", "order", "squarings", "topics", "blocks", "passes")
# Of lenses: how often something is drawn, tried or gone through.
_REPEATED = (
    *("angles", "chains", "directions", "draws", "epochs", "points", "prompts", "radii", "restarts", "shells"),
    *("starts", "test", "train"),
)
# Formulas that are computed for every length up to the given one.
_BY_LENGTH = ("dilution_bounds",)
# Circuits with a layer for each letter.
_BY_LAYER = ("sequential_circuit",)
_MOST_PASSES = 2**12  # of a total that is computed chunk by chunk


def checked(thing: Thing) -> Thing:
    """A function, or a class by its constructor, whose arguments are checked against their annotations."""
    return _checked(thing, values=True)


def checked_types(thing: Thing) -> Thing:
    """The same for what runs code of the user (models, callbacks): errors of values stay what they are."""
    return _checked(thing, values=False)


def _checked(thing: Thing, values: bool) -> Thing:
    if isinstance(thing, type):
        init = thing.__init__
        if not getattr(init, "__checked__", False) and init is not object.__init__:
            thing.__init__ = _guard(init, thing.__name__, skip=1, owner=thing, values=values)
        return thing
    return _guard(thing, thing.__name__, values=values) if isinstance(thing, types.FunctionType) else thing  # type: ignore[return-value]


def _guard(function: Function, name: str, skip: int = 0, owner: type | None = None, values: bool = True) -> Function:
    signature = inspect.signature(function)
    plan: Plan = []
    most: dict[str, int] = {}

    @functools.wraps(function)
    def call(*args: object, **options: object) -> object:
        if not plan:
            hints = _hints(function, owner)
            plan.extend((each, hints.get(each, Any), is_simple(hints.get(each, Any))) for each in signature.parameters)
            most.update(_limits(function, name, owner, hints))
        given = _bind(signature, name, skip, args, options)
        for field, hint, simple in plan[skip:]:
            if simple and field in given and not fits(hint, given[field]):
                raise BadInput(refusal(field, hint, given[field]))
            if field in most and type(given.get(field)) is int and given[field] > most[field]:
                raise BadInput(f"{field} must be at most {most[field]}, got {shown(given[field])}")
        if "chunk" in signature.parameters:
            _refuse_crumbs(signature, given)
        try:
            answer = function(*args, **options)
        except BadInput as problem:
            told = _without_dumps(str(problem), given)
            if told != str(problem):
                raise BadInput(told) from problem
            raise
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:
                raise BadInput(f"{name}: no file has so long a name, got {shown(problem.filename)[:80]}") from problem
            if (
                values and type(problem) is OSError and problem.errno is None
            ):  # not the machine's: a library did not like what it found in a file
                raise BadInput(f"{name}: {str(problem).partition(chr(10))[0][:200]}") from problem
            raise
        except (*VALUES, *TYPES) as problem:
            from sandlab._explaining import explain

            explain(problem, name, plan[skip:], given, values)
            raise
        if owner is not None:
            _refuse_strangers(plan[skip:], given)
        return answer

    call.__checked__ = True  # type: ignore[attr-defined]
    return call


def _limits(function: Function, name: str, owner: type | None, hints: Mapping[str, Hint]) -> dict[str, int]:
    """The largest whole numbers that are let through.

    Circuits are written out and sequences drawn by position, machines by state: what is far too large is refused before
    that begins. (How many bytes a model needs is known, and said, by `sized`; formulas take any length.)
    """
    module = function.__module__ if owner is None else owner.__module__
    written = module.startswith("sandlab.circuits.")
    drawn = module.startswith("sandlab.worlds.") and owner is not None and dataclasses.is_dataclass(owner)
    whole = [
        field for field, hint in hints.items() if hint in (int, int | None) and not re.search("seed|secret", field)
    ]
    most = dict.fromkeys(whole, 2**22) if written or drawn else {}
    formula = module.startswith("sandlab.lenses.") and name not in _BY_LENGTH
    most |= dict.fromkeys(_REPEATED, 2**22) if formula else {}
    most |= {} if name.endswith("Config") or formula else {"length": 2**22, "steps": 2**26}
    most |= {"length": 2**12} if name in _BY_LAYER else {}
    most |= {} if "chunk" in hints else {"examples": 2**22}  # all at once
    return most | {"depth": min(2**26, most.get("depth", 2**26))} | dict.fromkeys(_SMALL, 2**16)


def _refuse_crumbs(signature: inspect.Signature, given: Mapping[str, Any]) -> None:
    """Refuse chunks so small that the examples, or the targets in them, take thousands of passes."""
    default = {field: each.default for field, each in signature.parameters.items()}
    chunk = given.get("chunk", default["chunk"])
    for field in default.keys() & {"examples", "targets"}:
        total = given.get(field, default[field])
        length = getattr(given.get("world"), "length", 1) if field == "targets" else 1
        if all(type(each) is int and each > 0 for each in (total, chunk, length)):
            least = -(-total // (_MOST_PASSES * length))
            if chunk < least:
                small = f"chunk must be at least {least} for {total} {field}, got {chunk}"
                raise BadInput(f"{small}: every chunk is a pass of its own")


def _refuse_strangers(plan: Plan, given: Mapping[str, object]) -> None:
    """Refuse what a constructor only stores and its annotation excludes: numbers, words and the like.

    Lists and arrays are for the constructor to judge; objects of one's own classes may behave like what is asked for.
    """
    for field, hint, simple in plan:
        value = given.get(field)
        whole = isinstance(value, (list, tuple, dict, set, frozenset, range)) or getattr(value, "ndim", 0) > 0
        named = isinstance(value, dict) and not fits(hint, {})
        a_row = whole and not named and _takes_rows(hint) and not _holds_strangers(hint, value)
        # Classes and callable objects may stand for much; Python's own classes cannot, and for a word nothing else.
        own = isinstance(value, type) and value.__module__ == "builtins"
        judged = not a_row and (hint is str or own or not callable(value) or isinstance(value, _FUNCTIONS))
        odd = isinstance(value, (set, frozenset, io.IOBase)) and not _is_any_row(hint)
        odd = odd or (whole and hasattr(value, "dtype") and _takes_rows(hint) and _holds_strangers(hint, value))
        if not simple and field in given and is_plain(value) and (odd or (judged and not fits(hint, value))):
            raise BadInput(refusal(field, hint, value))


def _is_any_row(hint: Hint) -> bool:
    """Whether an annotation leaves open in which order, or from where, items come."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(map(_is_any_row, typing.get_args(hint)))
    unordered = (set, frozenset, collections.abc.Set, collections.abc.Iterable, collections.abc.Collection)
    return hint in (Any, object, *unordered) or typing.get_origin(hint) in unordered


def _holds_strangers(hint: Hint, value: object) -> bool:
    """Whether a row that should hold numbers holds what no constructor makes a number of: None, a word, other rows."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rows = [each for each in typing.get_args(hint) if _takes_rows(each)]
        return bool(rows) and all(_holds_strangers(each, value) for each in rows)
    kinds = [kind for kind in typing.get_args(hint) if kind is not Ellipsis]
    dtype = str(getattr(value, "dtype", "int"))
    if kinds and all(typing.get_origin(kind) in (tuple, list) for kind in kinds):
        return "int" not in dtype and "float" not in dtype
    if typing.get_origin(hint) not in (tuple, list) or not all(map(is_simple, kinds)):
        return False
    if isinstance(value, (list, tuple)):
        return any(item is None or isinstance(item, (str, bytes, list, tuple, dict, set)) for item in value)
    numbers = "int" in dtype or ("float" in dtype and set(kinds) != {int}) or ("bool" in dtype and bool in kinds)
    return getattr(value, "ndim", 1) != 1 or not numbers


def _takes_rows(hint: Hint) -> bool:
    """Whether an annotation speaks of lists, dictionaries or arrays."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_takes_rows(option) for option in typing.get_args(hint))
    arrays = getattr(hint, "__name__", "") in ("Tensor", "ndarray") or hasattr(hint, "dims")
    return arrays or typing.get_origin(hint) is not None or hint in (tuple, list, dict, set)


def _bind(
    signature: inspect.Signature, name: str, skip: int, args: tuple[object, ...], options: dict[str, object]
) -> dict[str, Any]:
    try:
        return signature.bind(*args, **options).arguments
    except TypeError as problem:
        known = list(signature.parameters)[skip:]
        for each in options:
            if each not in known:
                hint = nearest(each, known) or f"it has {', '.join(known)}"
                raise BadInput(f"{name} has no option {each!r}: {hint}") from None
        raise BadInput(f"{name}: {problem}") from None


def _without_dumps(text: str, given: Mapping[str, object]) -> str:
    """A refusal in which an argument that fills several lines (a module) is named by its class."""
    if "\n" in text:
        for value in given.values():
            text = text.replace(repr(value), f"a {type(value).__name__}") if "\n" in repr(value) else text
    return text


def _hints(function: Function, owner: type | None) -> dict[str, Hint]:
    """Parameter → annotation; one that cannot be resolved (names imported for type checkers alone) allows anything."""
    found: dict[str, Hint] = {}
    if owner is not None and dataclasses.is_dataclass(owner):
        for kind in reversed(owner.__mro__):
            found |= _resolved(inspect.get_annotations(kind), vars(sys.modules[kind.__module__]))
        return found
    inner = inspect.unwrap(function)
    return _resolved(getattr(inner, "__annotations__", {}), getattr(inner, "__globals__", {}))


def _resolved(annotations: Mapping[str, object], names: dict[str, object]) -> dict[str, Hint]:
    found: dict[str, Hint] = {}
    for field, annotation in annotations.items():
        holder = types.SimpleNamespace(__annotations__={field: annotation})
        try:
            # Many files import torch for type checkers alone.
            found |= typing.get_type_hints(holder, globalns={"torch": sys.modules.get("torch"), **names})
        except Exception:
            found[field] = Any
    return found
