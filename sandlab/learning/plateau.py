"""A learning rate that falls when a measurement stops falling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sandlab.errors import BadInput, integer, nearest, number

__all__ = ["Plateau"]


class _Scaled(torch.optim.AdamW):
    """AdamW with one more factor on its learning rate."""

    factor = 1.0

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            group["lr"] = group["lr"] * self.factor
        return super().step(closure)


class Plateau:
    """AdamW whose rate is multiplied by `factor` after `patience` evaluations without a new best, member by member.

    Pass it to `train` twice: `optimizer=plateau.optimizer` and `callbacks=[plateau]`; `evaluate` must give `metric`
    (smaller is better). The rule is that of torch's ReduceLROnPlateau with its default relative threshold of 1e-4.
    `rates` lists the factor of every member at each evaluation.
    """

    def __init__(
        self, lr: float, *, patience: int, factor: float = 0.5, metric: str = "loss", weight_decay: float = 0.0
    ) -> None:
        self.lr, self.weight_decay = number("lr", lr, low=0.0), number("weight_decay", weight_decay, low=0.0)
        self.patience, self.factor = integer("patience", patience, low=0), number("factor", factor, low=0.0, high=1.0)
        self.metric = metric
        self.made: list[_Scaled] = []
        self.rates: list[np.ndarray] = []

    def optimizer(self, weights: list[Tensor]) -> torch.optim.Optimizer:
        """The optimiser of the next member."""
        made = _Scaled(weights, lr=self.lr, weight_decay=self.weight_decay)
        self.made.append(made)
        return made

    def __call__(self, step: int, model: Any, metrics: Mapping[str, Any]) -> None:
        if self.metric not in metrics:
            hint = nearest(self.metric, metrics) or f"there are {', '.join(metrics)}"
            raise BadInput(f"the plateau of {self.metric!r} is watched, which is not evaluated: {hint}")
        value = np.atleast_1d(np.asarray(metrics[self.metric], dtype=float))
        if not self.rates:
            self.best, self.waited = np.full(len(value), np.inf), np.zeros(len(value), dtype=int)
        better = value < self.best - 1e-4 * np.abs(np.where(np.isinf(self.best), 0.0, self.best))
        self.best = np.where(better, value, self.best)
        self.waited = np.where(better, 0, self.waited + 1)
        for place in np.flatnonzero(self.waited > self.patience):
            self.made[place].factor *= self.factor
            self.waited[place] = 0
        self.rates.append(np.array([optimizer.factor for optimizer in self.made[: len(value)]]))
