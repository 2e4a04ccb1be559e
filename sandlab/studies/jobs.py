"""What a job asks of the machine it runs on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sandlab.errors import number

__all__ = ["resources"]

Job = TypeVar("Job", bound=Callable[..., Any])


def resources(*, cpus: float = 1, gpus: float | None = None, memory: float = 0) -> Callable[[Job], Job]:
    """Say what a job needs: CPU cores (torch threads), GPUs when its config's device is one, bytes of memory.

    A share of a GPU lets several small jobs run on one. Without this, a job takes one core, and one GPU on "cuda".

    >>> @resources(gpus=0.25)
    ... def train_small(config): ...
    """
    asked = {"cpus": number("cpus", cpus, low=0), "memory": number("memory", memory, low=0)}
    if gpus is not None:
        asked["gpus"] = number("gpus", gpus, low=0)

    def mark(job: Job) -> Job:
        job.resources = asked  # type: ignore[attr-defined]
        return job

    return mark
