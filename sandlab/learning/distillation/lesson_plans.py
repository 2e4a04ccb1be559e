"""Which teacher checkpoint teaches at which step of the student: schedules as values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from sandlab.errors import integer, number, require

__all__ = ["NT", "Custom", "EqualSplit", "KappaSplit", "LessonPlan", "OneShot", "TwoShot"]


class LessonPlan(ABC):
    """A function from the student's step (from 0) to the teacher's step whose weights teach. Subclasses are frozen."""

    @abstractmethod
    def checkpoint(self, step: int) -> int:
        """The number of updates of the teacher that teaches at this step."""

    def segments(self, steps: int) -> Iterator[tuple[int, int, int]]:
        """(first step, step after the last, checkpoint) of each stretch with one teacher."""
        start = 0
        while start < steps:
            end = self._end(start, steps)
            yield start, end, self.checkpoint(start)
            start = end

    def _end(self, start: int, steps: int) -> int:
        """The first step after `start` with another teacher, by doubling, then halving the stretch."""
        teacher, low, reach = self.checkpoint(start), start, 1
        while low + reach < steps and self.checkpoint(low + reach) == teacher:
            low, reach = low + reach, 2 * reach
        high = min(low + reach, steps)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.checkpoint(middle) == teacher else (low, middle)
        return high

    def checkpoints(self, steps: int) -> tuple[int, ...]:
        """Every checkpoint that is used."""
        return tuple(dict.fromkeys(teacher for _, _, teacher in self.segments(steps)))


@dataclass(frozen=True)
class OneShot(LessonPlan):
    """The final teacher throughout."""

    final: int

    def checkpoint(self, step: int) -> int:
        return self.final


@dataclass(frozen=True)
class Custom(LessonPlan):
    """(C_T, D): pairs (checkpoint, duration) one after another; the last checkpoint stays (Definition 21)."""

    stages: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        require(len(self.stages) >= 1, "stages", self.stages, "at least one pair (checkpoint, duration)")
        for _, duration in self.stages:
            integer("duration", duration, low=0)

    def checkpoint(self, step: int) -> int:
        for teacher, duration in self.stages:
            if step < duration:
                return teacher
            step -= duration
        return self.stages[-1][0]


@dataclass(frozen=True)
class NT(LessonPlan):
    """(N, T): the checkpoints i·T₀/N, i = 1 … N, for T steps each, then the final one (Definition 22)."""

    n: int
    each: int
    total: int

    def __post_init__(self) -> None:
        for name in ("n", "each", "total"):
            integer(name, getattr(self, name), low=1)

    def checkpoint(self, step: int) -> int:
        return self.total * min(step // self.each + 1, self.n) // self.n


@dataclass(frozen=True)
class TwoShot(LessonPlan):
    """(2, T), (3, T), …: each of `first` for T steps, then the final checkpoint."""

    first: tuple[int, ...]
    each: int
    final: int

    def checkpoint(self, step: int) -> int:
        index = step // self.each
        return self.first[index] if index < len(self.first) else self.final


@dataclass(frozen=True)
class EqualSplit(LessonPlan):
    """N-shot equal split: the student's S steps cut into N equal intervals, the i-th checkpoint in the i-th."""

    among: tuple[int, ...]
    horizon: int

    def __post_init__(self) -> None:
        require(len(self.among) >= 1, "among", self.among, "at least one checkpoint")
        integer("horizon", self.horizon, low=1)

    def checkpoint(self, step: int) -> int:
        n = len(self.among)
        return self.among[min(step * n // self.horizon, n - 1)]


@dataclass(frozen=True)
class KappaSplit(LessonPlan):
    """N-shot κT₀ equal split: each checkpoint for κT₀/N steps, whatever the student's horizon; the last one stays.

    κ → 0 is one-shot; 1/κ is the speed-up. Checkpoints that do not fit into the student's run are never used.
    """

    among: tuple[int, ...]
    kappa: float
    total: int

    def __post_init__(self) -> None:
        require(len(self.among) >= 1, "among", self.among, "at least one checkpoint")
        number("kappa", self.kappa, low=0.0, high=1.0)
        integer("total", self.total, low=1)

    def checkpoint(self, step: int) -> int:
        n, each = len(self.among), self.kappa * self.total / len(self.among)
        return self.among[n - 1 if each <= 0 else min(int(step / each), n - 1)]
