"""When a member has learnt enough, or will learn no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sandlab.errors import BadInput, integer, nearest, number

__all__ = ["EarlyStop"]


@dataclass
class EarlyStop:
    """Stop a member when a metric falls below a level, or has not fallen by `tolerance` for `patience` evaluations.

    metric     name among the evaluation's metrics ("loss" for one held-out batch), smaller is better
    below      stop as soon as the metric is below this
    patience   stop after this many evaluations without improvement
    """

    metric: str = "loss"
    patience: int | None = None
    below: float | None = None
    tolerance: float = 0.0
    best: np.ndarray = field(default_factory=lambda: np.zeros(0), init=False, repr=False, compare=False)
    waited: np.ndarray = field(default_factory=lambda: np.zeros(0), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.patience is None and self.below is None:
            raise BadInput("early stopping needs patience or below: nothing would ever stop")
        if self.patience is not None:
            integer("patience", self.patience, low=1)
        number("tolerance", self.tolerance, low=0.0)

    def __call__(self, step: int, metrics: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which members stop now."""
        if self.metric not in metrics:
            hint = nearest(self.metric, metrics) or f"there are {', '.join(metrics)}"
            raise BadInput(f"early stopping watches {self.metric!r}, which is not evaluated: {hint}")
        value = np.atleast_1d(np.asarray(metrics[self.metric], dtype=float))
        if len(self.best) != len(value):
            self.best, self.waited = np.full(len(value), np.inf), np.zeros(len(value))
        better = value < self.best - self.tolerance
        self.best = np.where(better, value, self.best)
        self.waited = np.where(better, 0, self.waited + 1)
        stop = np.zeros(len(value), dtype=bool)
        if self.below is not None:
            stop |= value < self.below
        if self.patience is not None:
            stop |= self.waited >= self.patience
        return stop
