"""Keeping the weights of the best evaluation instead of the last ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sandlab.errors import BadInput, nearest
from sandlab.learning._engine.checkpoints import read_checkpoint, write_checkpoint
from sandlab.learning.population import Population

__all__ = ["BestWeights"]

AVERAGED = "ema/"


class BestWeights:
    """The weights of each member at the evaluation at which `metric` was smallest; the first of equals.

    metric   of the weights themselves ("loss"), or of their average ("ema/loss")
    path     where they are kept between the checkpoints of an interrupted training, if anywhere
    """

    def __init__(self, metric: str, population: Population, path: Path | None = None) -> None:
        self.metric, self.path = metric, path
        self.smallest = np.full(len(population), np.inf)
        self.weights = _copy(population)
        self._evaluated: dict[str, Tensor] | None = None
        if path is not None and path.exists():
            self.weights, facts = read_checkpoint(path, torch.device("cpu"))
            self.smallest = np.array(facts["smallest"])

    def evaluated(self, population: Population) -> None:
        """To be called inside each evaluation: averaged weights are only in place while they are evaluated, last."""
        if self.metric.startswith(AVERAGED):
            self._evaluated = _copy(population)

    def __call__(self, step: int, population: Population, metrics: Mapping[str, Any]) -> None:
        """Compare this evaluation with the best one so far: a callback of `train`."""
        if self.metric not in metrics:
            hint = nearest(self.metric, metrics) or f"there are {', '.join(metrics)}"
            raise BadInput(f"the weights to keep depend on {self.metric!r}, which is not evaluated: {hint}")
        values = np.asarray(metrics[self.metric], dtype=float)
        better = values < self.smallest
        if not better.any():
            return
        now = self._evaluated or _copy(population)
        for name, kept in self.weights.items():
            kept[torch.from_numpy(better)] = now[name][torch.from_numpy(better)]
        self.smallest = np.where(better, values, self.smallest)
        if self.path is not None:
            write_checkpoint(self.path, self.weights, {"smallest": self.smallest.tolist()})


def _copy(population: Population) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in population.stacked.items()}
