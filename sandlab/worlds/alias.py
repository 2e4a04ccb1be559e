"""Drawing from one of many fixed laws at constant cost, whatever the alphabet: Walker's alias method, vectorised."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["AliasTable"]


class AliasTable:
    """A law per row, cut into `states` columns of equal mass with at most two tokens each.

    One uniform number u names a column ⌊u·states⌋ and, by what is left of it, the column's own token or its alias.
    On a CPU the arrays are NumPy's (small operations cost a third of torch's there), elsewhere torch's; code that only
    uses `take`, `where`, comparisons and indexing reads the same for both.

    Source: Walker 1977; Vose 1991.
    """

    def __init__(self, laws: Float[Tensor, "row states"], device: torch.device | str = "cpu") -> None:
        self.states = laws.shape[-1]
        self.device = torch.device(device)
        keep, alias = _columns(laws.detach().cpu().double().numpy())
        self.keep, self.alias = self.array(keep.ravel()), self.array(alias.ravel())

    @property
    def on_cpu(self) -> bool:
        return self.device.type == "cpu"

    def array(self, values: Any) -> Any:
        """The library's own array, on the table's device."""
        if self.on_cpu:
            return values.numpy() if isinstance(values, Tensor) else np.asarray(values)
        return torch.as_tensor(values, device=self.device)

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        return np.where(condition, yes, no) if self.on_cpu else torch.where(condition, yes, no)

    def numbers(self, steps: int, examples: int, rng: torch.Generator) -> tuple[Any, Any]:
        """Columns and what is left within them, for each step and example."""
        level = torch.rand(steps, examples, dtype=torch.float64, device=rng.device, generator=rng).mul_(self.states)
        column = level.to(torch.int64)
        return self.array(column), self.array(level.sub_(column))

    def draw(self, row: Any, column: Any, rest: Any) -> Any:
        """A token from the law of each given row."""
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
