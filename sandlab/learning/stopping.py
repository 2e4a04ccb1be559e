"""When a member has learnt enough, or has stopped improving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sandlab.errors import BadInput, integer, nearest, number

__all__ = ["EarlyStop"]


class Tracker:
    """The smallest value of a metric so far and the number of evaluations since, for each member.

    A value is an improvement when it is below the smallest one by more than `absolute` + `relative` · |smallest|.
    """

    def __init__(self, metric: str, members: int, *, absolute: float = 0.0, relative: float = 0.0) -> None:
        self.metric, self.absolute, self.relative = metric, absolute, relative
        self.best, self.waited = np.full(members, np.inf), np.zeros(members, dtype=np.int64)

    def update(self, metrics: Mapping[str, np.ndarray], evaluated: np.ndarray) -> np.ndarray:
        """Take in an evaluation of the members in a mask; returns whose value is an improvement."""
        if self.metric not in metrics:
            hint = nearest(self.metric, metrics) or f"there are {', '.join(metrics) or 'none'}"
            raise BadInput(f"training depends on the metric {self.metric!r}, which is not evaluated: {hint}")
        value = np.asarray(metrics[self.metric], dtype=float)
        scale = np.where(np.isinf(self.best), 0.0, np.abs(self.best))
        better = evaluated & (value < self.best - self.absolute - self.relative * scale)
        self.best = np.where(better, value, self.best)
        self.waited = np.where(better, 0, self.waited + evaluated)
        return better

    def reset(self, member: int) -> None:
        """Forget what was seen of one member."""
        self.best[member], self.waited[member] = np.inf, 0


@dataclass(frozen=True)
class EarlyStop:
    """Stop a member when a metric is below a level, or has not dropped by `tolerance` for `patience` evaluations.

    metric     name among the evaluation's metrics ("loss" for one held-out batch), smaller is better
    below      stop as soon as the metric is below this
    patience   stop after this many evaluations without improvement
    """

    metric: str = "loss"
    patience: int | None = None
    below: float | None = None
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if self.patience is None and self.below is None:
            raise BadInput("early stopping needs patience or below: nothing would ever stop")
        if self.patience is not None:
            integer("patience", self.patience, low=1)
        number("tolerance", self.tolerance, low=0.0)

    def tracker(self, members: int) -> Tracker:
        """What the rule remembers while it is applied."""
        return Tracker(self.metric, members, absolute=self.tolerance)

    def stops(self, tracker: Tracker, metrics: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which members stop after an evaluation that the tracker has seen."""
        low = np.asarray(metrics[self.metric], dtype=float) < (-np.inf if self.below is None else self.below)
        return low | (tracker.waited >= (np.inf if self.patience is None else self.patience))
