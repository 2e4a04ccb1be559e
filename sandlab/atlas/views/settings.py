"""Worlds made from a page's settings, and the settings as a page offers them: choices, sliders with allowed ends.

A world's fields are checked on creation, and a refusal names what is allowed ("length must be a whole number of at
least 4"): an impossible value is tried for each field, and the refusal read.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import TYPE_CHECKING

from sandlab.atlas.catalogue import ON_FILES, PATHS
from sandlab.errors import BadInput
from sandlab.lab._store.plain import Facts

if TYPE_CHECKING:
    from sandlab.worlds.base import World

__all__ = ["made_world", "offered"]

MOST_LENGTH = 2048
_NUMBER = r"(-?[\d.]+(?:e[+-]?\d+)?)"


@functools.lru_cache(maxsize=32)
def made_world(name: str, settings: tuple[tuple[str, str], ...]) -> World:
    """The world of these settings; kept, since each letter that is typed asks for it."""
    from sandlab.cli.browse import make_world

    given = dict(settings)
    if name in ON_FILES:
        raise BadInput(f"{name} reads a file: make it in Python or at the terminal")
    if len(given) > 40 or any(len(value) > 2000 for value in given.values()):
        raise BadInput("that is more settings than a world has")
    if any(given.get(key) for key in PATHS):
        raise BadInput("a page opens no files: make a world that reads some in Python or at the terminal")
    made = make_world(name, {key: value for key, value in given.items() if value != ""})
    length = getattr(made, "length", 0)
    longest = max(length) if isinstance(length, tuple) else length
    if isinstance(longest, int) and longest > MOST_LENGTH:
        raise BadInput(f"length must be at most {MOST_LENGTH} on this page, got {longest}")
    return made


def offered(made: World) -> list[Facts]:
    """Name, kind, value and meaning of each setting that a text can give; its choices, or its least and largest."""
    from sandlab.cli.explain import parameter_texts

    found, texts = [], parameter_texts(type(made))
    for field in dataclasses.fields(made):
        value = getattr(made, field.name)
        if field.init and field.name not in PATHS and (value is None or isinstance(value, (bool, int, float, str))):
            kind = type(value).__name__ if value is not None else "text"
            facts = {"name": field.name, "kind": kind, "value": "" if value is None else str(value)}
            facts["about"] = " ".join(texts.get(field.name, "").split())
            found.append({**facts, **_allowed(made, field.name, value)})
    return found


def _allowed(made: World, name: str, value: object) -> Facts:
    """What the refusal of an impossible value says is allowed; nothing where it says nothing."""
    if value is None or isinstance(value, bool):
        return {}
    tried = {int: -(10**9), float: -1e9, str: "?"}[type(value)]
    try:
        dataclasses.replace(made, **{name: tried})
    except BadInput as refusal:
        said = str(refusal).rpartition(", got ")[0]
    except Exception:  # a field that another depends on may fail in any way
        return {}
    else:
        return {}
    if (listed := re.match(rf"{name} must be one of (.*)", said)) and isinstance(value, str):
        return {"choices": re.findall(r"'([^']*)'", listed[1])}
    if both := re.match(rf"{name} must be a (?:whole )?number between {_NUMBER} and {_NUMBER}", said):
        return {"low": float(both[1]), "high": float(both[2])}
    if least := re.match(rf"{name} must be a (?:whole )?number of at least {_NUMBER}", said):
        return {"low": float(least[1])}
    return {}
