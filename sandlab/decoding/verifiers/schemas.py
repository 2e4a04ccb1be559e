"""What an answer should look like, said in Python: schemas, pydantic models, function signatures, lists of choices."""

from __future__ import annotations

import datetime
import enum
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, get_origin

from sandlab.errors import BadInput

__all__ = ["TextLanguage", "compile_grammar"]

Json: TypeAlias = Any
"""A value read from JSON, such as a schema: dictionaries, lists, texts, numbers, booleans, None."""

# What the incremental parser cannot follow is left out of the grammar; complete texts are checked against all of it.
UNFOLLOWED = (
    "not",
    "uniqueItems",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
)
CHECKED_FORMATS = ("date", "time", "date-time")
FORMATS = (*CHECKED_FORMATS, "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri")
# Keywords that bring in properties or items from elsewhere: what is evaluated is then more than what stands here.
ELSEWHERE = ("$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "not")
NAMED = ("properties", "$defs", "definitions", "patternProperties")
DATA = ("enum", "const", "default", "examples", "required")


@dataclass(frozen=True)
class TextLanguage:
    """A set of texts: a grammar that is followed token by token, and what else a complete text must satisfy.

    grammar   in the form of the incremental parser; every prefix of a text of the language is a prefix of its texts
    check     a complete text of the grammar → whether it belongs to the language; None: all of them do
    read      a text of the language → the Python value it stands for; None: the text itself
    """

    grammar: str
    check: Callable[[str], bool] | None = None
    read: Callable[[str], object] | None = None


def compile_grammar(
    *,
    lark: str | Path | None = None,
    regex: str | None = None,
    json_schema: object = None,
    choices: Sequence[str] | type[enum.Enum] | None = None,
) -> TextLanguage:
    """The language of a Lark grammar, a regular expression, a JSON schema or a list of choices, checked.

    JSON is written without blanks between tokens, and the properties of an object in the order of the schema.

    json_schema   a dictionary, its text or a Path to it, True (any JSON); a pydantic model or any type that pydantic
                  reads (a dataclass, a TypedDict, list[Person], Literal["a", "b"]), whose objects have the fields that
                  are declared and no others unless the model allows extra ones; or a function, whose arguments are then
                  the properties of an object
    choices       texts, or an enumeration whose values are texts
    """
    given = [source for source in (lark, regex, json_schema, choices) if source is not None]
    if len(given) != 1:
        raise BadInput(
            f"give one of a grammar, a regular expression, a JSON schema or a list of choices, got {len(given)} of them"
        )
    if choices is not None:
        return _from_choices(choices)
    if json_schema is not None:
        return _from_schema(json_schema)
    if lark is not None:
        return TextLanguage(_validated("grammar", _parser().grammar_from_lark(_text(lark, "grammar"))))
    return TextLanguage(_validated("regular expression", _parser().grammar_from_regex(regex)))


def _from_choices(choices: Sequence[str] | type[enum.Enum]) -> TextLanguage:
    kind = choices if isinstance(choices, enum.EnumMeta) else None
    listed: Any = choices if kind is None else [each.value for each in kind]
    if isinstance(listed, str) or not listed or not all(isinstance(each, str) and each for each in listed):
        raise BadInput(f"choices are a list of texts that are not empty, got {choices!r}")
    wanted = "|".join(re.escape(each) for each in dict.fromkeys(listed))
    return TextLanguage(_validated("list of choices", _parser().grammar_from_regex(wanted)), read=kind)


def _from_schema(source: object) -> TextLanguage:
    schema, read = _schema_of(source)
    if schema is False:
        raise BadInput("the JSON schema false has no texts: give one that something satisfies")
    typed = _is_type(source)
    followed, loose = _followed({} if schema is True else _plainer(schema, schema, typed=typed))
    # Free blanks between tokens would let a model write blanks for ever.
    compact = {"whitespace_flexible": False}
    made = str(_parser().grammar_from_json_schema(json.dumps(followed), overrides=compact))
    check = _readable(read) if typed else _checker(schema) if loose else None
    return TextLanguage(_validated("JSON schema", made), check, read)


def _is_type(source: object) -> bool:
    """Whether pydantic reads the texts: a model, a class, or what annotations are made of."""
    return hasattr(source, "model_json_schema") or isinstance(source, type) or get_origin(source) is not None


def _readable(read: Callable[[str], object]) -> Callable[[str], bool]:
    """Whether a pydantic model takes a text: its own validators say more than its schema."""

    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


def _schema_of(source: object) -> tuple[Json, Callable[[str], object]]:
    """The schema as plain data, and how its texts are read."""
    if _is_type(source) or inspect.isfunction(source) or inspect.ismethod(source):
        with _in_a_sentence(source):
            return _schema_by_pydantic(source)
    if isinstance(source, (Mapping, bool)):
        return source, json.loads
    if not isinstance(source, (str, Path)):
        raise BadInput(
            f"a JSON schema is a dictionary, text, Path, pydantic model, type or function, got {type(source).__name__}"
        )
    text = _text(source, "JSON schema")
    try:
        schema = json.loads(text)
    except json.JSONDecodeError as problem:
        raise BadInput(f"the JSON schema is not JSON: {problem}") from None
    if not isinstance(schema, (dict, bool)):
        raise BadInput(f"a JSON schema is an object like {{'type': 'object'}}, got {text[:60]!r}")
    return schema, json.loads


@contextmanager
def _in_a_sentence(source: object) -> Iterator[None]:
    """Says in one sentence that there is no pydantic here, or that it has no schema for this."""
    try:
        from pydantic import PydanticUserError
    except ImportError as missing:
        raise BadInput("types and functions as schemas need pydantic: pip install pydantic") from missing
    try:
        yield
    except (PydanticUserError, NameError) as problem:
        name = getattr(source, "__name__", repr(source))
        raise BadInput(f"{name} has no JSON schema: {str(problem).splitlines()[0]}") from None


def _schema_by_pydantic(source: Any) -> tuple[Json, Callable[[str], object]]:
    if hasattr(source, "model_json_schema"):
        return source.model_json_schema(), source.model_validate_json
    if not _is_type(source):
        return _signature(source).model_json_schema(), json.loads
    from pydantic import TypeAdapter

    adapter = TypeAdapter(source)
    return adapter.json_schema(), adapter.validate_json


def _signature(function: Callable[..., object]) -> Any:
    """A pydantic model of a function's arguments."""
    from pydantic import ConfigDict, create_model

    fields: dict[str, Json] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            shown = str(parameter).partition(":")[0]
            raise BadInput(f"{function.__name__} takes {shown}: a schema needs arguments that are given by name")
        kind = Any if parameter.annotation is parameter.empty else parameter.annotation
        fields[name] = (kind, ... if parameter.default is parameter.empty else parameter.default)
    return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def _plainer(schema: Json, root: Json, *, typed: bool) -> Json:
    """The same schema in words that a parser follows, where there are any; `_followed` leaves the rest out.

    typed   the schema of a type: formats that the parser does not know are left out, since whoever reads the text
            checks them, and properties that are not declared, which reading would drop, are not written
    """
    if isinstance(schema, list):
        return [_plainer(part, root, typed=typed) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Json] = {}
    for name, value in schema.items():
        if name in NAMED and isinstance(value, Mapping):  # names of one's own, whatever they are called
            made[name] = {own: _plainer(part, root, typed=typed) for own, part in value.items()}
        else:
            made[name] = value if name in DATA else _plainer(value, root, typed=typed)
    if typed and isinstance(made.get("format"), str) and made["format"] not in FORMATS:
        del made["format"]
    if typed and made.get("type") == "object" and "properties" in made:
        made.setdefault("additionalProperties", False)
    if not any(name in made for name in ELSEWHERE):
        for name, plain in (("unevaluatedProperties", "additionalProperties"), ("unevaluatedItems", "items")):
            if name in made:
                made.setdefault(plain, made[name])
    return _with_listed_names(made, root)


def _with_listed_names(schema: dict[str, Json], root: Json) -> dict[str, Json]:
    """Where the names of properties are listed, as for a dictionary with literal keys: each name as a property."""
    names = schema.get("propertyNames")
    while isinstance(names, Mapping) and str(names.get("$ref", "")).startswith("#/"):
        names = _at(root, names["$ref"])
    if not isinstance(names, Mapping) or "enum" not in names or "patternProperties" in schema:
        return schema
    others, known = schema.get("additionalProperties", True), schema.get("properties", {})
    listed = {name: known.get(name, others) for name in names["enum"] if isinstance(name, str)}
    return {**schema, "properties": listed, "additionalProperties": False}


def _at(root: Json, pointer: str) -> Json:
    """What a pointer like #/$defs/name points at; None if there is nothing."""
    found = root
    for step in pointer.split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def _followed(schema: Json) -> tuple[Json, bool]:
    """The part of a schema that a parser can follow, and whether complete texts must be checked as well."""
    if not isinstance(schema, Mapping):
        return schema, False
    kept: dict[str, Json] = {}
    loose = schema.get("format") in CHECKED_FORMATS
    for name, value in schema.items():
        if name in UNFOLLOWED:
            loose = True
            continue
        if name == "oneOf":
            # "Exactly one of" is "one of" while it is being written.
            name, loose = "anyOf", True
        kept[name], also = _followed_value(name, value)
        loose |= also
    return kept, loose


def _followed_value(name: str, value: Json) -> tuple[Json, bool]:
    if name in DATA:
        return value, False
    if name in NAMED and isinstance(value, Mapping):
        parts = {key: _followed(part) for key, part in value.items()}
        return {key: part for key, (part, _) in parts.items()}, any(loose for _, loose in parts.values())
    if isinstance(value, list):
        listed = [_followed(part) for part in value]
        return [part for part, _ in listed], any(loose for _, loose in listed)
    return _followed(value)


def _checker(schema: Json) -> Callable[[str], bool]:
    try:
        import jsonschema
    except ImportError as missing:
        raise BadInput(
            "this schema says more than a grammar can (oneOf, not, uniqueItems, formats, …): pip install jsonschema"
        ) from missing
    formats = jsonschema.FormatChecker(formats=())
    formats.checks("date", raises=ValueError)(_read_by(datetime.date.fromisoformat))
    formats.checks("time", raises=ValueError)(_read_by(datetime.time.fromisoformat))
    formats.checks("date-time", raises=ValueError)(_read_by(datetime.datetime.fromisoformat))
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    judge = kind(schema, format_checker=formats)

    def check(text: str) -> bool:
        try:
            return bool(judge.is_valid(json.loads(text)))
        except json.JSONDecodeError:
            return False

    return check


def _read_by(read: Callable[[str], object]) -> Callable[[object], bool]:
    """Whether a text can be read; ValueError where it cannot."""

    def good(value: object) -> bool:
        if isinstance(value, str):
            # A leap second is a time, and so is one with a small t or z: datetime knows neither.
            read(re.sub(r":60(?=\D|$)", ":59", value.upper()))
        return True

    return good


def _validated(what: str, grammar: str) -> str:
    problem = _parser().validate_grammar(grammar)
    if problem and not problem.startswith("WARNING"):
        raise BadInput(f"the {what} does not parse: {_in_one_line(problem)}")
    return grammar


def _in_one_line(problem: str) -> str:
    """A parser's message without the excerpts of the source and the arrows below them."""
    lines = [line for line in problem.splitlines() if line.strip() and not re.match(r"\s|\d+ *\|", line)]
    return " ".join(" ".join(lines or [problem]).split())


def _text(source: str | Path, what: str) -> str:
    if not isinstance(source, Path):
        return str(source)
    if not source.is_file():
        raise BadInput(f"there is no {what} file {str(source)!r}")
    return source.read_text(encoding="utf-8")


def _parser() -> Any:
    try:
        from llguidance import LLMatcher
    except ImportError as missing:
        raise BadInput("grammars need llguidance: pip install 'sandlab[grammar]'") from missing
    return LLMatcher
