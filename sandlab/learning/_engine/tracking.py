"""Whether a metric still improves, member by member."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sandlab.errors import BadInput, nearest

__all__ = ["Tracker"]


class Tracker:
    """The smallest value of a metric so far and the number of evaluations since, for each member.

    A value is an improvement when it is below the smallest one by more than `absolute` + `relative` · |smallest|.
    """

    def __init__(self, metric: str, members: int, *, absolute: float = 0.0, relative: float = 0.0) -> None:
        self.metric, self.absolute, self.relative = metric, absolute, relative
        self.best, self.waited = np.full(members, np.inf), np.zeros(members, dtype=np.int64)

    def update(self, metrics: Mapping[str, np.ndarray], evaluated: np.ndarray | None = None) -> np.ndarray:
        """Take in an evaluation of some of the members (a mask; None: all); returns whose value is an improvement."""
        if self.metric not in metrics:
            hint = nearest(self.metric, metrics) or f"there are {', '.join(metrics) or 'none'}"
            raise BadInput(f"training depends on the metric {self.metric!r}, which is not evaluated: {hint}")
        value = np.asarray(metrics[self.metric], dtype=float)
        scale = np.where(np.isinf(self.best), 0.0, np.abs(self.best))
        better = value < self.best - self.absolute - self.relative * scale
        if evaluated is None:
            evaluated = np.ones(len(value), dtype=bool)
        better &= evaluated
        self.best = np.where(better, value, self.best)
        self.waited = np.where(better, 0, self.waited + evaluated)
        return better

    def reset(self, member: int) -> None:
        """Forget what was seen of one member."""
        self.best[member], self.waited[member] = np.inf, 0
