"""What a job asks of the machine it runs on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sandlab.errors import number

__all__ = ["needs"]

Job = TypeVar("Job", bound=Callable[..., Any])


def needs(*, cpus: float = 1, gpus: float | None = None, memory: float = 0) -> Callable[[Job], Job]:
    """Say what a job needs: CPU cores (torch threads), GPUs when its config's device is one, bytes of memory.

    A share of a GPU lets several small jobs run on one. Without this, a job takes one core, and one GPU on "cuda".

    >>> @needs(gpus=0.25)
    ... def train_small(config): ...
    """
    wishes = {"cpus": number("cpus", cpus, low=0), "memory": number("memory", memory, low=0)}
    if gpus is not None:
        wishes["gpus"] = number("gpus", gpus, low=0)

    def mark(job: Job) -> Job:
        job.needs = wishes  # type: ignore[attr-defined]
        return job

    return mark
