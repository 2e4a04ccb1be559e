"""Sampling from one of many fixed distributions at a cost that hardly depends on the alphabet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["RowSampler"]

FEW = 3  # states up to which comparing with every threshold is the fastest
Array: TypeAlias = Any
"""A NumPy array on a CPU, a tensor elsewhere."""


class RowSampler:
    """One distribution per row; `draw(row, *numbers)` samples a token for each given row.

    With few states the uniform number is compared with the row's cumulative probabilities. With more, each row becomes
    an alias table, columns of equal mass with at most two tokens each: u selects the column ⌊u·states⌋ and, by its
    fractional part, the column's first token or its alias (Walker 1977).

    On a CPU the arrays are NumPy's (small operations cost a third of torch's there), elsewhere torch's; loops that use
    only `take`, `where`, comparisons and indexing are the same for both.
    """

    def __init__(self, probs: Float[Tensor, "row states"], device: torch.device | str = "cpu") -> None:
        self.states = probs.shape[-1]
        self.device = torch.device(device)
        table = probs.detach().cpu().double().numpy()
        if self.states <= FEW:
            steps = table.cumsum(-1)[:, :-1].astype(np.float32)
            self.thresholds = [self.array(np.ascontiguousarray(column)) for column in steps.T]
        else:
            keep, alias = _alias_tables(table)
            self.keep, self.alias = self.array(keep.astype(np.float32).ravel()), self.array(alias.ravel())

    @property
    def on_cpu(self) -> bool:
        return self.device.type == "cpu"

    def array(self, values: np.ndarray | Tensor) -> Array:
        """The values as an array of the sampler's library and device; a CPU tensor shares its memory."""
        if self.on_cpu:
            return values.numpy() if isinstance(values, Tensor) else np.asarray(values)
        return torch.as_tensor(values, device=self.device)

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        return np.where(condition, yes, no) if self.on_cpu else torch.where(condition, yes, no)

    def numbers(self, steps: int, examples: int, rng: torch.Generator) -> Iterable[tuple[Array, ...]]:
        """The random numbers of each step, for `draw`."""
        uniform = torch.rand(steps, examples, device=rng.device, generator=rng)
        if self.states <= FEW:
            return zip(self.array(uniform))
        uniform.mul_(self.states)
        # Rounding may lift the product to `states` itself, which belongs to the last column.
        column = uniform.to(torch.int64).clamp_(max=self.states - 1)
        return zip(self.array(column), self.array(uniform.sub_(column)))

    def draw(self, row: Array, *numbers: Array) -> Array:
        """A token from the distribution of each given row."""
        if self.states <= FEW:
            (uniform,) = numbers
            above = [uniform >= threshold.take(row) for threshold in self.thresholds]
            byte = [part.view(np.uint8 if self.on_cpu else torch.uint8) for part in above]
            return sum(byte[1:], byte[0]) if byte else row * 0
        column, rest = numbers
        index = row * self.states + column
        return self.where(rest < self.keep.take(index), column, self.alias.take(index))


def _alias_tables(probs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each column the share of its first token, and its alias: the lightest column is filled from the heaviest."""
    rows, states = probs.shape
    mass = probs / probs.sum(-1, keepdims=True) * states
    keep, alias = np.ones_like(mass), np.tile(np.arange(states), (rows, 1))
    filled = np.zeros_like(mass, dtype=bool)
    every = np.arange(rows)
    for _ in range(states - 1):
        light = np.where(filled, np.inf, mass).argmin(-1)
        heavy = np.where(filled, -np.inf, mass).argmax(-1)
        share = mass[every, light]
        keep[every, light], alias[every, light], filled[every, light] = share, heavy, True
        mass[every, heavy] -= 1 - share
    return keep, alias
