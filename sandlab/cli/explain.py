"""What a parameter means, read from the docstring that defines it.

Docstrings list parameters in two columns, a line and its continuation lines each:

    vocab, length   number of tokens; largest number of positions
    width           coordinates of the stream; head_width defaults to width / heads
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Collection
from typing import Any

__all__ = ["parameter_texts", "split_parameters"]

_ROW = re.compile(r"^(?:- )?(\w+(?:, \w+)*)(\s+)(\S.*)$")


def parameter_texts(thing: Any) -> dict[str, str]:
    """Parameter → what its docstring says: of a model its config's and those that the config extends."""
    options = getattr(thing, "config_class", thing)
    names = parameter_names(thing)
    classes = reversed(inspect.getmro(options)[:-1]) if inspect.isclass(options) else []
    found: dict[str, str] = {}
    for text in [each.__doc__ or "" for each in classes] or [inspect.getdoc(thing) or ""]:
        found |= split_parameters(inspect.cleandoc(text), names)[1]
    if options is not thing:  # what the model itself says of its options counts where the config is silent
        found = split_parameters(inspect.getdoc(thing) or "", names)[1] | found
    return {name: found[name] for name in names if name in found}


def parameter_names(thing: Any) -> list[str]:
    options = getattr(thing, "config_class", thing)
    if dataclasses.is_dataclass(options):
        return [field.name for field in dataclasses.fields(options)]
    return list(inspect.signature(thing).parameters)


def split_parameters(text: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """The docstring without its two columns, and what they say: parameter → text."""
    rest: list[str] = []
    rows: list[tuple[list[str], list[str]]] = []
    inside = False
    for line in text.splitlines():
        found = _ROW.match(line)
        listed = found[1].split(", ") if found else []
        if found and set(listed) & set(names) and (len(found[2]) > 1 or len(listed) > 1):
            rows.append((listed, [found[3]]))
            inside = True
        elif inside and line.startswith("    "):
            rows[-1][1].append(line.strip())
        else:
            rest.append(line)
            inside = False
    return "\n".join(rest), _meanings(rows, names)


def _meanings(rows: list[tuple[list[str], list[str]]], names: Collection[str]) -> dict[str, str]:
    """Each parameter's own row; without one, the part of another row that speaks of it."""
    found: dict[str, str] = {}
    texts = [(listed, " ".join(lines)) for listed, lines in rows]
    for listed, text in texts:
        parts = [part.strip() for part in text.split(";")]
        separate = len(parts) == len(listed) > 1
        found |= {name: parts[index] if separate else text for index, name in enumerate(listed) if name in names}
    for name in set(names) - set(found):
        for _, text in texts:
            if (part := next((part for part in text.split(";") if re.search(rf"\b{name}\b", part)), None)) is not None:
                found[name] = part.strip()
                break
    return found
