"""Masked prediction tasks: predict the product of some tokens from other tokens, written "2x3|1"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sandlab.errors import BadInput, require

__all__ = ["MaskedTask"]


@dataclass(frozen=True)
class MaskedTask:
    """E[⊗_{τ ∈ targets} x_τ | x_t, t ∈ given]; times count from 1.

    `MaskedTask.parse("2x3|1")` predicts x₂ ⊗ x₃ from x₁; "2|1,3" predicts x₂ from x₁ and x₃.
    """

    targets: tuple[int, ...]
    given: tuple[int, ...]

    def __post_init__(self) -> None:
        require(len(self.targets) >= 1, "targets", self.targets, "at least one time")
        for name in ("targets", "given"):
            times = getattr(self, name)
            require(all(time >= 1 for time in times), name, times, "times of at least 1")
            require(tuple(sorted(set(times))) == times, name, times, "different times in order")
        require(not set(self.targets) & set(self.given), "targets", self.targets, "times that are not given")

    @classmethod
    def parse(cls, text: str | MaskedTask) -> MaskedTask:
        """Read "2x3|1" (also with ⊗, *, and several given tokens separated by commas)."""
        if isinstance(text, MaskedTask):
            return text
        if not re.fullmatch(r"\s*\d+(\s*[x⊗*]\s*\d+)*\s*\|\s*\d+(\s*[,x⊗*]\s*\d+)*\s*", text):
            raise BadInput(f"task must look like '2x3|1', got {text!r}: targets, a bar, what is given")
        left, right = text.split("|")
        return cls(_times(left), _times(right))

    @property
    def times(self) -> tuple[int, ...]:
        """All times that occur, in order."""
        return tuple(sorted({*self.targets, *self.given}))

    @property
    def length(self) -> int:
        """The last time that occurs: how long a string the task needs."""
        return self.times[-1]

    def __str__(self) -> str:
        return "x".join(map(str, self.targets)) + "|" + ",".join(map(str, self.given))


def _times(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(number) for number in re.findall(r"\d+", text)))
