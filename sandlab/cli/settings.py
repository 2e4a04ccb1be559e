"""Reading `--set name=value`: text becomes a value of the field's type. Nothing is ever evaluated."""

from __future__ import annotations

import collections.abc
import dataclasses
import json
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from sandlab.errors import BadInput, nearest

__all__ = ["pairs", "read_settings", "read_value", "under"]


def pairs(given: Iterable[str]) -> dict[str, str]:
    """["length=40", "world.order=2"] as a dictionary of texts."""
    found: dict[str, str] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"--set takes name=value, got {item!r}: try --set length=40")
        found[name.strip()] = text.strip()
    return found


def under(prefix: str, texts: Mapping[str, str]) -> dict[str, str]:
    """The settings of one part: "world.length" for "world" is "length"."""
    return {name.removeprefix(f"{prefix}."): text for name, text in texts.items() if name.startswith(f"{prefix}.")}


def read_settings(owner: Any, texts: Mapping[str, str], called: str) -> dict[str, Any]:
    """Values for the fields of a dataclass (a type or an instance); `a.b=c` changes a field of a nested one."""
    hints = _hints(owner)
    values: dict[str, Any] = {}
    for name, text in texts.items():
        head, dot, rest = name.partition(".")
        if head not in hints:
            inside = rest if rest in hints else _inside(owner, name)
            hint = f"did you mean {inside!r}?" if inside else nearest(head, hints) or "it has " + ", ".join(hints)
            raise BadInput(f"{called} has no setting {head!r}: {hint}")
        if dot:
            inner = values.get(head, getattr(owner, head, None))
            if not dataclasses.is_dataclass(inner) or isinstance(inner, type):
                raise BadInput(f"{called}: {head} has no settings of its own, got {name!r}")
            values[head] = dataclasses.replace(inner, **read_settings(inner, {rest: text}, f"{called}'s {head}"))
        else:
            values[head] = read_value(hints[head], text, head)
    return values


def _inside(owner: Any, name: str) -> str:
    """Where a setting of this name lies within the parts of an instance: "main.training.steps" for "steps"."""
    waiting = [(f"{field.name}.", getattr(owner, field.name)) for field in _parts(owner)]
    while waiting:
        path, part = waiting.pop(0)
        if name.partition(".")[0] in {field.name for field in dataclasses.fields(part)}:
            return path + name
        waiting += [(f"{path}{field.name}.", getattr(part, field.name)) for field in _parts(part)]
    return ""


def _parts(owner: Any) -> list[dataclasses.Field[Any]]:
    """Fields of an instance that hold dataclasses themselves."""
    known = dataclasses.fields(owner) if not isinstance(owner, type) else ()
    return [field for field in known if dataclasses.is_dataclass(getattr(owner, field.name, None))]


def read_value(hint: Any, text: str, field: str) -> Any:
    """A text as a value of type `hint`: JSON where it is JSON, else words; "a,b" where a list is meant."""
    if text.lower() in ("none", "null"):
        text = "null"
    candidates = [text, json.dumps(text), f"[{text}]", json.dumps([word.strip() for word in text.split(",")])]
    for candidate in candidates:
        try:
            return _validate(hint, candidate)
        except ValueError:
            continue
    raise BadInput(f"{field} must be {_in_words(hint)}, got {text!r}")


def _validate(hint: Any, candidate: str) -> Any:
    """The value of a JSON text when it has the type; ValueError otherwise."""
    try:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
    except ImportError:
        return convert(hint, json.loads(candidate))
    try:
        adapter: Any = TypeAdapter(hint)
    except (PydanticSchemaGenerationError, PydanticUserError):
        return convert(hint, json.loads(candidate))
    return adapter.validate_json(candidate, strict=True)


def convert(hint: Any, value: Any) -> Any:
    """The same with plain means, for machines without pydantic: numbers, words, options, unions and lists of them."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is None or hint is type(None):
        return _same(value, hint is Any or value is None)
    if origin in (typing.Union, types.UnionType):
        return _first(inside, value)
    if origin is typing.Literal:
        return _same(value, value in inside)
    if hint is float:
        return float(_same(value, isinstance(value, (int, float)) and not isinstance(value, bool)))
    if origin in (tuple, list) or hint in (tuple, list) or _is_sequence(origin):
        _same(value, isinstance(value, list))
        return (list if origin is list or hint is list else tuple)(_items(inside, value))
    if hint in (int, str, bool):
        return _same(value, type(value) is hint)
    raise ValueError(f"cannot read a {hint} from text")


def _items(inside: tuple[Any, ...], value: list[Any]) -> list[Any]:
    if len(inside) == 2 and inside[1] is Ellipsis:
        return [convert(inside[0], item) for item in value]
    kinds = inside if len(inside) == len(value) else (inside[0] if len(inside) == 1 else Any,) * len(value)
    _same(value, len(inside) <= 1 or len(inside) == len(value))
    return [convert(kind, item) for kind, item in zip(kinds, value)]


def _first(options: tuple[Any, ...], value: Any) -> Any:
    for option in options:
        try:
            return convert(option, value)
        except ValueError:
            continue
    raise ValueError


def _same(value: Any, fits: bool) -> Any:
    if not fits:
        raise ValueError(f"{value!r} does not fit")
    return value


def _is_sequence(origin: Any) -> bool:
    return (
        isinstance(origin, type)
        and origin.__module__ == "collections.abc"
        and origin.__name__ in ("Sequence", "Iterable")
    )


def _hints(owner: Any) -> dict[str, Any]:
    """Field name → type; a type that cannot be resolved accepts any JSON value."""
    kind = owner if isinstance(owner, type) else type(owner)
    try:
        found = typing.get_type_hints(kind)
    except (NameError, TypeError, SyntaxError):
        found = {}
    return {field.name: found.get(field.name, Any) for field in dataclasses.fields(kind) if field.init}


def _in_words(hint: Any) -> str:
    names = {int: "a whole number", float: "a number", str: "a word", bool: "true or false", type(None): "none"}
    inside = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_in_words(option) for option in inside)
    if typing.get_origin(hint) is typing.Literal:
        return "one of " + ", ".join(map(str, inside))
    if typing.get_origin(hint) is collections.abc.Callable:
        return "a function, which only Python can give"
    if inside:
        return f"a list of {' and '.join(_in_words(kind) for kind in inside if kind is not Ellipsis)}, such as 1,2"
    return names.get(hint, f"a {getattr(hint, '__name__', hint)}")
