"""Answers as JSON that every browser reads: what is not a finite number is null."""

from __future__ import annotations

import json
import math

from starlette.responses import JSONResponse

__all__ = ["Answer", "as_json"]


def as_json(found: object) -> bytes:
    """The answer as JSON; "nan" and the infinities, which JSON does not have, become null."""
    try:
        return _written(found)
    except ValueError:
        return _written(_finite(found))


def _written(found: object) -> bytes:
    return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _finite(found: object) -> object:
    if isinstance(found, dict):
        return {name: _finite(value) for name, value in found.items()}
    if isinstance(found, (list, tuple)):
        return [_finite(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found


class Answer(JSONResponse):
    """A response of `as_json`."""

    def render(self, content: object) -> bytes:
        return as_json(content)
