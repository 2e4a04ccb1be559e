"""Plain values: what JSON can hold."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

__all__ = ["Facts", "Json", "plain"]

Json: TypeAlias = Any
"""A value read from JSON: dictionaries, lists, texts, numbers, booleans, None."""

Facts: TypeAlias = dict[str, Json]
"""A JSON object."""


def plain(value: object) -> Json:
    """A value that every JSON reader understands: infinities and not-a-numbers become strings."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if type(value).__module__ == "numpy":
        return plain(value.tolist())  # type: ignore[attr-defined]
    return value if isinstance(value, (bool, int, str, type(None))) else str(value)
