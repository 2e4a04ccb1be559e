"""For the reference: the stars of formulas in docstrings are letters, as on every other page."""

from __future__ import annotations

from typing import Any

import griffe
from formulas import with_stars


class Stars(griffe.Extension):
    """Escapes them before the docstrings are read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_stars(obj.docstring.value)
