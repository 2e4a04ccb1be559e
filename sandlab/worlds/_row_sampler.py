"""Drawing from one of many fixed laws at a cost that hardly depends on the alphabet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["RowSampler"]

FEW = 3  # states up to which comparing with every threshold is the fastest


class RowSampler:
    """A law per row; `draw(row, *numbers)` gives one token from the law of each given row.

    With few states the uniform number is compared with the row's cumulated law. With more, the law is cut into columns
    of equal mass with at most two tokens each: u names a column ⌊u·states⌋ and, by what is left of it, the column's
    own token or its alias (Walker 1977).

    On a CPU the arrays are NumPy's (small operations cost a third of torch's there), elsewhere torch's; loops that only
    use `take`, `where`, comparisons and indexing read the same for both.
    """

    def __init__(self, laws: Float[Tensor, "row states"], device: torch.device | str = "cpu") -> None:
        self.states = laws.shape[-1]
        self.device = torch.device(device)
        table = laws.detach().cpu().double().numpy()
        if self.states <= FEW:
            steps = table.cumsum(-1)[:, :-1].astype(np.float32)
            self.thresholds = [self.array(np.ascontiguousarray(column)) for column in steps.T]
        else:
            keep, alias = _columns(table)
            self.keep, self.alias = self.array(keep.astype(np.float32).ravel()), self.array(alias.ravel())

    @property
    def on_cpu(self) -> bool:
        return self.device.type == "cpu"

    def array(self, values: Any) -> Any:
        """The library's own array, on the sampler's device; a CPU tensor shares its memory."""
        if self.on_cpu:
            return values.numpy() if isinstance(values, Tensor) else np.asarray(values)
        return torch.as_tensor(values, device=self.device)

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        return np.where(condition, yes, no) if self.on_cpu else torch.where(condition, yes, no)

    def numbers(self, steps: int, examples: int, rng: torch.Generator) -> Iterable[tuple[Any, ...]]:
        """The random numbers of each step, for `draw`."""
        level = torch.rand(steps, examples, device=rng.device, generator=rng)
        if self.states <= FEW:
            return zip(self.array(level))
        level.mul_(self.states)
        # Rounding may lift the product to `states` itself: the last column, wholly its own.
        column = level.to(torch.int64).clamp_(max=self.states - 1)
        return zip(self.array(column), self.array(level.sub_(column)))

    def draw(self, row: Any, *numbers: Any) -> Any:
        """A token from the law of each given row."""
        if self.states <= FEW:
            (level,) = numbers
            above = [level >= threshold.take(row) for threshold in self.thresholds]
            byte = [part.view(np.uint8 if self.on_cpu else torch.uint8) for part in above]
            return sum(byte[1:], byte[0]) if byte else row * 0
        column, rest = numbers
        place = row * self.states + column
        return self.where(rest < self.keep.take(place), column, self.alias.take(place))


def _columns(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each column the share of its own token and the token of the rest: the poorest is filled from the richest."""
    rows, states = laws.shape
    mass = laws / laws.sum(-1, keepdims=True) * states
    keep, alias = np.ones_like(mass), np.tile(np.arange(states), (rows, 1))
    filled = np.zeros_like(mass, dtype=bool)
    every = np.arange(rows)
    for _ in range(states - 1):
        poor = np.where(filled, np.inf, mass).argmin(-1)
        rich = np.where(filled, -np.inf, mass).argmax(-1)
        share = mass[every, poor]
        keep[every, poor], alias[every, poor], filled[every, poor] = share, rich, True
        mass[every, rich] -= 1 - share
    return keep, alias
