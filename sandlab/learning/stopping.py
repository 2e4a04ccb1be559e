"""When a member has learnt enough, or has stopped improving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sandlab.errors import BadInput, integer, number
from sandlab.learning._engine.tracking import Tracker

__all__ = ["EarlyStop"]


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
        ended = np.zeros(len(tracker.best), dtype=bool)
        if self.below is not None:
            ended |= np.asarray(metrics[self.metric], dtype=float) < self.below
        if self.patience is not None:
            ended |= tracker.waited >= self.patience
        return ended
