"""A laboratory that runs every job at once in this process, for tests of studies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sandlab.studies.study import Lab


class StandIn(Lab):
    """Computes everything here; with `remember`, each job once."""

    def __init__(self, *, remember: bool = False) -> None:
        self.known: dict[Any, Any] | None = {} if remember else None

    def map(
        self, job: Callable[..., Any], configs: Iterable[Any], *, given: Iterable[Any] | None = None, label: str = ""
    ) -> list[Any]:
        listed = list(configs)
        arguments = [()] * len(listed) if given is None else [(value,) for value in given]
        found = []
        for config, values in zip(listed, arguments, strict=True):
            if self.known is None:
                found.append(job(config, *values))
                continue
            key = (job, repr(config))
            if key not in self.known:
                self.known[key] = job(config, *values)
            found.append(self.known[key])
        return found


LAB = StandIn()


def remembering() -> StandIn:
    """A laboratory that computes each job once."""
    return StandIn(remember=True)
