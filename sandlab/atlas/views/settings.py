"""The settings of a world as a page offers them: choices to choose from, sliders with the ends the world allows.

A world's fields are checked on creation, and a refusal names what is allowed ("length must be a whole number of at
least 4"): an impossible value is tried for each field, and the refusal read.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from sandlab.atlas.catalogue import PATHS
from sandlab.errors import BadInput
from sandlab.lab._store.plain import Facts

if TYPE_CHECKING:
    from sandlab.worlds.base import World

__all__ = ["offered"]

_NUMBER = r"(-?[\d.]+(?:e[+-]?\d+)?)"


def offered(made: World) -> list[Facts]:
    """Name, kind and value of each setting that can be written as text; its choices, or its least and largest value."""
    found = []
    for field in dataclasses.fields(made):
        value = getattr(made, field.name)
        if field.init and field.name not in PATHS and (value is None or isinstance(value, (bool, int, float, str))):
            kind = type(value).__name__ if value is not None else "text"
            facts = {"name": field.name, "kind": kind, "value": "" if value is None else str(value)}
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
