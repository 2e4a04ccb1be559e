"""How the learning rate, and the averaging of weights, change with the step.

A schedule is a name, one of the classes here, or any function from the step to a factor of the base rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from sandlab.errors import choice, integer, number, require

__all__ = [
    "SCHEDULES",
    "Constant",
    "Cosine",
    "Linear",
    "OneCycle",
    "PowerDecay",
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
    """From 1 down to `final` in a straight line."""

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
    """A cosine rise from `start` to 1 over the share `rise` of the run, then a cosine fall to `final` (Smith 2018)."""

    rise: float = 0.3
    start: float = 0.04
    final: float = 4e-6

    def __call__(self, progress: float) -> float:
        if progress < self.rise:
            return self.start + (1 - self.start) * (1 - math.cos(math.pi * progress / self.rise)) / 2
        rest = (progress - self.rise) / max(1 - self.rise, 1e-12)
        return self.final + (1 - self.final) * (1 + math.cos(math.pi * rest)) / 2


@dataclass(frozen=True)
class StepDecay:
    """Multiply by `factor` at each of the given shares of the run."""

    at: tuple[float, ...] = (0.5, 0.75)
    factor: float = 0.1

    def __post_init__(self) -> None:
        for share in self.at:
            number("at", share, low=0.0, high=1.0)

    def __call__(self, progress: float) -> float:
        return self.factor ** sum(progress >= share for share in self.at)


Schedule = str | Constant | Linear | Cosine | OneCycle | StepDecay | Callable[[int], float]
SCHEDULES: dict[str, Callable[[], Callable[[float], float]]] = {
    "constant": Constant,
    "linear": Linear,
    "cosine": Cosine,
    "one-cycle": OneCycle,
    "step": StepDecay,
}
_SHAPES = (Constant, Linear, Cosine, OneCycle, StepDecay)


def factors(schedule: Schedule, steps: int, warmup: int = 0) -> Tensor:
    """The factor of every step, as a table (float64).

    Over the first `warmup` steps the factor rises as (step + 1)/warmup; the named shapes then run over what is left,
    with progress = (step − warmup)/(steps − warmup). A function of the step is used as it is, times the rise.
    """
    integer("warmup", warmup, low=0)
    rise = [min(1.0, (step + 1) / warmup) if warmup else 1.0 for step in range(steps)]
    if isinstance(schedule, str):
        schedule = SCHEDULES[choice("schedule", schedule, SCHEDULES)]()  # type: ignore[assignment]
    require(callable(schedule), "schedule", schedule, f"a function of the step or one of {', '.join(SCHEDULES)}")
    if isinstance(schedule, _SHAPES):
        left = max(1, steps - warmup)
        values = [schedule(max(0, step - warmup) / left) for step in range(steps)]
    else:
        values = [float(schedule(step)) for step in range(steps)]  # type: ignore[operator]
    return torch.tensor(values, dtype=torch.float64) * torch.tensor(rise, dtype=torch.float64)


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
