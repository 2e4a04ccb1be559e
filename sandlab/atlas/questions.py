"""What a page may ask, and how each argument is read from the address: by its kind, never as code or as a path."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from sandlab.errors import BadInput
from sandlab.lab._store.plain import Facts

__all__ = ["QUESTIONS", "read_arguments"]

_LONGEST = 8000  # letters of an argument


def _texts(text: str) -> dict[str, str]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("settings are an object")
    return {str(name): str(value) for name, value in found.items()}


_GAME: dict[str, Callable[[str], object]] = {
    "tokens": int, "depth": int, "seed": int, "rule": str, "error": float, "run": int,
}  # fmt: skip
# View → its arguments and how each is read from the address.
QUESTIONS: dict[str, dict[str, Callable[[str], object]]] = {
    "worlds": {},
    "world": {"name": str, "settings": _texts, "seed": int, "examples": int},
    "predict": {"name": str, "settings": _texts, "text": str},
    "guess": {"kept": str, "text": str},
    "circuit": {
        "machine": str, "word": str, "length": int, "method": str, "bits": int, "off": str, "temperature": float,
    },
    "training": {"world": str, "model": str, "settings": _texts, "options": _texts},
    "walk": {**_GAME, "algorithm": str},
    "race": {**_GAME, "draws": int},
    "refine": {"sites": int, "coupling": float, "edges": str, "block": int, "steps": int, "seed": int},
    "claims": {},
    "history": {"claim": str},
    "standing": {"chapter": str},
    "sources": {},
    "cards": {},
    "devices": {},
}  # fmt: skip


def read_arguments(view: str, given: Iterable[tuple[str, str]]) -> Facts:
    """Arguments of a view, read from the address by their kind; an unknown one is refused."""
    readers, found = QUESTIONS[view], {}
    for name, text in given:
        if name == "token":
            continue
        if name not in readers:
            raise BadInput(f"{view} is not asked for {name!r}"[:200])
        if len(text) > _LONGEST:
            raise BadInput(f"{name} is too long")
        try:
            found[name] = readers[name](text)
        except (ValueError, TypeError):
            raise BadInput(f"{name} cannot be read: {text[:80]!r}") from None
    return found
