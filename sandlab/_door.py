"""A mark for what refuses bad calls by its annotations, where results depend on the file in which it stands.

The version of a result passes over this mark (`sandlab.lab._exec.imports.read_source`): it can be set and taken away,
and no result is stale. Write it as here, in lines of its own:

    from sandlab._door import guarded

    @guarded
    def get(kind: str, name: str) -> Any: ...
"""

from __future__ import annotations

from sandlab.checking import Thing, checked_types

__all__ = ["guarded"]


def guarded(thing: Thing) -> Thing:
    """`checked_types` under a name of its own."""
    return checked_types(thing)
