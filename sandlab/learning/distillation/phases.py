"""Phases of a learning curve, and the choice of checkpoints by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from sandlab.errors import BadInput, require

__all__ = ["Phases", "accuracy_phases", "equally_spaced", "loss_phases", "mid_transition", "multiples_of", "peak"]

Curve = Float[np.ndarray, "evaluation"]
Steps = Int[np.ndarray, "evaluation"]


@dataclass(frozen=True)
class Phases:
    """Steps at which the rapid phase starts, is half-way, and ends; −1 where the curve never gets there."""

    start: int
    middle: int
    end: int

    @property
    def found(self) -> bool:
        return min(self.start, self.middle, self.end) >= 0


def accuracy_phases(steps: Steps, accuracy: Curve, chance: float = 0.5) -> Phases:
    """The transition of an accuracy: above chance + 0.05 three times in a row, above half-way to 1, above 0.99."""
    above = accuracy > chance + 0.05
    lasting = above[:-2] & above[1:-1] & above[2:] if len(above) > 2 else above[:0]
    return Phases(_first(steps, lasting), _first(steps, accuracy > (chance + 1) / 2), _first(steps, accuracy > 0.99))


def loss_phases(steps: Steps, loss: Curve) -> Phases:
    """The rapid drop of a loss from its plateau (at 2 % of training) to its floor (the end).

    Start: 5 % of the way down; middle: nearest to half of it; end: 85 % of the way.
    """
    require(len(loss) >= 2, "loss", len(loss), "at least two evaluations")
    plateau = float(loss[np.abs(np.asarray(steps) - 0.02 * steps[-1]).argmin()])
    floor = float(loss[-1])
    drop = plateau - floor
    middle = int(steps[np.abs(loss - (plateau + floor) / 2).argmin()])
    return Phases(_first(steps, loss < plateau - 0.05 * drop), middle, _first(steps, loss < floor + 0.15 * drop))


def _first(steps: Steps, yes: np.ndarray) -> int:
    found = np.flatnonzero(yes)
    return int(steps[found[0]]) if len(found) else -1


def equally_spaced(total: int, n: int) -> tuple[int, ...]:
    """i·T₀/N for i = 1 … N: never the untrained model."""
    return tuple(total * index // n for index in range(1, n + 1))


def mid_transition(saved: Sequence[int], phases: Phases) -> int:
    """The checkpoint nearest to the middle of the transition."""
    if phases.middle < 0:
        raise BadInput("the curve has no transition: train the teacher longer")
    return min((step for step in saved if step > 0), key=lambda step: abs(step - phases.middle))


def peak(saved: Sequence[int], values: Sequence[float] | np.ndarray) -> int:
    """The checkpoint at which a measure (correlation with the support, median L_robust) is largest."""
    require(len(saved) == len(values), "values", len(values), f"one for each of the {len(saved)} checkpoints")
    return int(saved[int(np.argmax(values))])


def multiples_of(saved: Sequence[int], first: int) -> tuple[int, ...]:
    """The checkpoints at multiples of the first one's step, and the last."""
    chosen = [step for step in saved if step > 0 and step % first == 0]
    return tuple(dict.fromkeys([*chosen, saved[-1]]))
