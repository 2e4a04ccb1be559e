"""Options of an automaton, typed, for the functions that build one and pass them on."""

from __future__ import annotations

from typing import TypedDict

__all__ = ["MachineOptions", "TaskOptions"]


class TaskOptions(TypedDict, total=False):
    """Options of `Automaton` that functions which build one pass on."""

    length: int | tuple[int, int]
    probs: tuple[float, ...] | None
    legal: tuple[tuple[bool, ...], ...] | None
    pattern: tuple[int, ...] | None
    pattern_share: float
    count: int | None
    observation: tuple[int, ...] | None
    reveal: float
    scratchpad: bool
    accepting: tuple[int, ...] | None
    letter_names: tuple[str, ...]
    state_names: tuple[str, ...]


class MachineOptions(TaskOptions, total=False):
    """The same, with the start."""

    start: int
