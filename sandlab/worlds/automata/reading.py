"""An automaton from text: its name, a regular expression, or a JSON object."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sandlab.checking import checked
from sandlab.errors import BadInput, nearest, shown
from sandlab.worlds.automata.catalogue import named_machine
from sandlab.worlds.automata.languages import from_regex
from sandlab.worlds.automata.machine import Automaton, as_table

__all__ = ["from_json", "read_machine"]

MOST_CHARACTERS = 1_000_000
_NAME = re.compile(r"[A-Z][A-Za-z]*\d+([\^_x]\d+)?")
FIELDS = ("transitions", "start", "accepting", "states", "letters")
EXAMPLE = 'for example {"transitions": [[0, 1], [1, 0]]}'


@checked
def read_machine(text: str, **options: Any) -> Automaton:
    """A file that ends in .json, a JSON object, a known name ("S5"), or else a regular expression ("(abab)*").

    A capital letter with a number ("X5") is a name, never silently an expression: that is written "(X5)".
    """
    if not isinstance(text, str):
        raise BadInput(f"an automaton is given as text, got {shown(text)}")
    stripped = text.strip()
    if stripped.endswith(".json"):
        path = Path(stripped)
        if not path.is_file():
            raise BadInput(f"no file {stripped!r}: give the path of a JSON automaton, a name or a regular expression")
        return from_json(_read(path), **options)
    if stripped.startswith(("{", "[[")):
        return from_json(stripped, **options)
    try:
        return named_machine(stripped, **options)
    except BadInput as unknown:
        if "no automaton called" not in str(unknown):
            raise
        if _NAME.fullmatch(stripped):
            raise BadInput(f"{unknown}; the regular expression is written '({stripped})'") from None
    return from_regex(stripped, **options)


def from_json(text: str, **options: Any) -> Automaton:
    """Read `{"transitions": [[0, 1], [1, 0]], "start": 0}`, or the same with names.

    With names: `{"letters": ["a", "b"], "states": ["even", "odd"], "transitions": {"even": {"a": "odd", "b": "even"},
    …}, "start": "even", "accepting": ["even"]}`. A bare table `[[0, 1], [1, 0]]` is enough.
    """
    if len(text) > MOST_CHARACTERS:
        raise BadInput(f"a JSON automaton has at most {MOST_CHARACTERS} characters, got {len(text)}")
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise BadInput(f"a JSON automaton is not nested as deeply as this one: {EXAMPLE}") from None
    except json.JSONDecodeError as problem:
        raise BadInput(
            f"not a JSON automaton: {problem.msg} at line {problem.lineno}, column {problem.colno}"
        ) from None
    data = {"transitions": data} if isinstance(data, list) else data
    _check_fields(data)
    if isinstance(data["transitions"], dict):
        return _from_names(data, options)
    given = {"start": data.get("start", 0), "accepting": data.get("accepting"), "transitions": data["transitions"]}
    names = {
        "letter_names": tuple(map(str, data.get("letters") or ())),
        "state_names": tuple(map(str, data.get("states") or ())),
    }
    return Automaton(**{**given, **names, **options})


def _check_fields(data: object) -> None:
    """Refuse what does not have the form of an automaton; whether names and numbers fit together is checked later."""
    if not isinstance(data, dict):
        raise BadInput(f"a JSON automaton is an object or a table, got {data!r}: {EXAMPLE}")
    for name in data:
        if name not in FIELDS:
            raise BadInput(f"a JSON automaton has no field {name!r}: {nearest(name, FIELDS) or ', '.join(FIELDS)}")
    rows = data.get("transitions")
    cells = list(rows.values()) if isinstance(rows, dict) else rows
    if not isinstance(cells, list) or not cells or not all(isinstance(row, type(rows)) for row in cells):
        raise BadInput(f"a JSON automaton needs transitions, a row for every state: {EXAMPLE}")
    for name in ("states", "letters", "accepting"):
        given = data.get(name)
        if given is not None and not (isinstance(given, list) and all(isinstance(x, (str, int)) for x in given)):
            raise BadInput(f"{name} must be a list of names or numbers, got {given!r}")
        if given is not None and len(set(map(str, given))) < len(given):
            twice = next(x for x in given if list(map(str, given)).count(str(x)) > 1)
            raise BadInput(f"{name} names {twice!r} twice: each has a name of its own")
        if given == [] and name != "accepting":
            raise BadInput(f"the list of {name} is empty: name them all, or leave the list out")
    numbers = [x for row in cells for x in row] if isinstance(rows, list) else []
    if not all(isinstance(x, int) and not isinstance(x, bool) for x in numbers):
        raise BadInput(f"a table of transitions holds the numbers of states: {EXAMPLE}")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The object of its pairs; a name given twice would silently hide the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise BadInput(f"the JSON object names {next(n for n in names if names.count(n) > 1)!r} twice")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInput(f"{path} cannot be read ({problem}): give a JSON automaton") from None


def _from_names(data: dict[str, Any], options: dict[str, Any]) -> Automaton:
    rows: dict[str, dict[str, str]] = data["transitions"]
    given = {name: names for name, names in data.items() if names is not None}
    states = [str(state) for state in given.get("states", rows)]
    letters = [str(letter) for letter in given.get("letters", sorted({x for row in rows.values() for x in row}))]
    number = {state: index for index, state in enumerate(states)}

    def state(name: object, where: str) -> int:
        if str(name) not in number:
            hint = nearest(str(name), number) or f"the states are {', '.join(states)}"
            raise BadInput(f"{where} names the unknown state {name!r}: {hint}")
        return number[str(name)]

    for origin in rows:
        state(origin, "transitions")
    table = []
    for origin in states:
        row = rows.get(origin, {})
        for letter in row:
            if letter not in letters:
                raise BadInput(
                    f"state {origin!r} has a transition for the unknown letter {letter!r}: {', '.join(letters)}"
                )
        missing = [letter for letter in letters if letter not in row]
        if missing:
            raise BadInput(f"state {origin!r} has no transition for letter {missing[0]!r}: add one, or a sink state")
        table.append([state(row[letter], f"the transition of {origin!r} by {letter!r}") for letter in letters])
    accepting = data.get("accepting")
    return Automaton(
        transitions=as_table(table),
        start=state(given.get("start", states[0]), "start"),
        accepting=None if accepting is None else tuple(state(name, "accepting") for name in accepting),
        letter_names=tuple(letters),
        state_names=tuple(states),
        **options,
    )
