"""How the learning rate, and the averaging of weights, change during training.

A schedule is a name, one of the classes here, or any function from the step to a factor of the base rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from sandlab.errors import choice, integer, number, require
from sandlab.learning.stopping import Tracker

__all__ = [
    "SCHEDULES",
    "Constant",
    "Cosine",
    "Linear",
    "OneCycle",
    "PowerDecay",
    "ReduceLROnPlateau",
    "Schedule",
    "StepDecay",
    "averaging",
    "factors",
]


@dataclass(frozen=True)
class Constant:
    """factor = 1."""

    def __call__(self, progress: float) -> float:
        return 1.0


@dataclass(frozen=True)
class Linear:
    """A straight line from 1 down to `final`."""

    final: float = 0.0

    def __call__(self, progress: float) -> float:
        return 1 + (self.final - 1) * progress


@dataclass(frozen=True)
class Cosine:
    """final + (1 − final)(1 + cos π·progress)/2 (Loshchilov and Hutter 2017, eq. 5)."""

    final: float = 0.0

    def __call__(self, progress: float) -> float:
        return self.final + (1 - self.final) * (1 + math.cos(math.pi * progress)) / 2


@dataclass(frozen=True)
class OneCycle:
    """Up from `start` to 1 at the fraction `peak` of the run, then down to `final`, both as a cosine (Smith 2018)."""

    peak: float = 0.3
    start: float = 0.04
    final: float = 4e-6

    def __call__(self, progress: float) -> float:
        if progress < self.peak:
            return self.start + (1 - self.start) * (1 - math.cos(math.pi * progress / self.peak)) / 2
        rest = (progress - self.peak) / max(1 - self.peak, 1e-12)
        return self.final + (1 - self.final) * (1 + math.cos(math.pi * rest)) / 2


@dataclass(frozen=True)
class StepDecay:
    """Multiply by `factor` at each of the given fractions of the run."""

    at: tuple[float, ...] = (0.5, 0.75)
    factor: float = 0.1

    def __post_init__(self) -> None:
        for fraction in self.at:
            number("at", fraction, low=0.0, high=1.0)

    def __call__(self, progress: float) -> float:
        return self.factor ** sum(progress >= fraction for fraction in self.at)


@dataclass(frozen=True)
class ReduceLROnPlateau:
    """Multiply a member's rate by `factor` after more than `patience` evaluations without improvement of a metric.

    The rule is that of torch's scheduler of this name: smaller is better, and an improvement is a value below the
    smallest one so far by a relative 10⁻⁴. `train` must be given something to evaluate.
    """

    patience: int
    factor: float = 0.5
    metric: str = "loss"

    def __post_init__(self) -> None:
        integer("patience", self.patience, low=0)
        number("factor", self.factor, low=0.0, high=1.0)

    def tracker(self, members: int) -> Tracker:
        """What the rule remembers while it is applied."""
        return Tracker(self.metric, members, relative=1e-4)


Shape: TypeAlias = Constant | Linear | Cosine | OneCycle | StepDecay
Schedule: TypeAlias = str | Shape | ReduceLROnPlateau | Callable[[int], float]
SCHEDULES: dict[str, Callable[[], Shape]] = {
    "constant": Constant,
    "linear": Linear,
    "cosine": Cosine,
    "one-cycle": OneCycle,
    "step": StepDecay,
}


def factors(schedule: Schedule, steps: int, warmup: int = 0) -> Tensor:
    """The factor of every step, as a table (float64).

    Over the first `warmup` steps the factor is (step + 1)/warmup times that of the schedule; the named shapes run over
    the steps that are left, with progress = (step − warmup)/(steps − warmup). A function of the step is used as it is.
    What `ReduceLROnPlateau` does depends on the evaluations and is not in the table.
    """
    integer("warmup", warmup, low=0)
    ramp = [min(1.0, (step + 1) / warmup) if warmup else 1.0 for step in range(steps)]
    if isinstance(schedule, str):
        schedule = SCHEDULES[choice("schedule", schedule, SCHEDULES)]()
    if isinstance(schedule, ReduceLROnPlateau):
        schedule = Constant()
    require(callable(schedule), "schedule", schedule, f"a function of the step or one of {', '.join(SCHEDULES)}")
    if isinstance(schedule, Shape):
        left = max(1, steps - warmup)
        values = [schedule(max(0, step - warmup) / left) for step in range(steps)]
    else:
        values = [float(schedule(step)) for step in range(steps)]
    return torch.tensor(values, dtype=torch.float64) * torch.tensor(ramp, dtype=torch.float64)


@dataclass(frozen=True)
class PowerDecay:
    """Decay of an average of the weights that follows early weights faster: 1 − max((t + 1)^(−power), 1 − decay).

    Before step `start` the decay is `decay`.
    """

    decay: float = 0.999
    power: float = 0.67
    start: int = 0

    def __call__(self, step: int) -> float:
        return self.decay if step < self.start else 1 - max((step + 1) ** -self.power, 1 - self.decay)


def averaging(ema: float | Callable[[int], float], steps: int) -> Tensor:
    """The decay of the average of the weights at every step, as a table (float64)."""
    values = [float(ema(step)) for step in range(steps)] if callable(ema) else [ema] * max(1, steps)
    return torch.tensor([number("ema", value, low=0.0, high=1.0) for value in values], dtype=torch.float64)
