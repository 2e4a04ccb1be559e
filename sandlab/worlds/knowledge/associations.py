"""A table of associations: each item has one answer, to be learnt by heart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import choice, integer
from sandlab.random import rng as make_rng
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["Associations"]


@register("worlds")
@dataclass(frozen=True)
class Associations(World):
    """f*: [N] → [M], one item in, its answer out; there is nothing to generalise.

    items, answers   N and M (answers None: as many as items)
    table            "bijection" (a random permutation; needs N = M), "injection" (needs N ≤ M), "map" (each answer
                     uniform and independent) or "identity"
    table_seed       which random table
    everything       a batch goes through the items in order (full batches when n = N) instead of drawing them

    Inputs have one token; one answer. truth["item"]: the item.

    Source: Cabannes, Dohmatob and Bietti 2024; Nichani, Lee and Bietti 2024.
    """

    items: int = 64
    answers: int | None = None
    table: str = "bijection"
    table_seed: int = 0
    everything: bool = False

    def __post_init__(self) -> None:
        integer("items", self.items, low=1)
        choice("table", self.table, ("bijection", "injection", "map", "identity"))
        low = {"bijection": self.items, "identity": self.items, "injection": self.items, "map": 1}[self.table]
        high = self.items if self.table == "bijection" else None
        integer("answers", self.outputs, low=low, high=high, hint=f"a {self.table} of {self.items} items")
        integer("table_seed", self.table_seed, low=0)

    @property
    def vocab(self) -> int:
        return self.items

    @property
    def outputs(self) -> int:
        return self.items if self.answers is None else self.answers

    @cached_property
    def answer(self) -> Int[Tensor, "item"]:
        """f*(x) for every item x."""
        draw = make_rng(self.table_seed, "associations")
        if self.table == "identity":
            return torch.arange(self.items)
        if self.table == "map":
            return torch.randint(0, self.outputs, (self.items,), generator=draw)
        return torch.randperm(self.outputs, generator=draw)[: self.items]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        if self.everything:
            item = torch.arange(n, device=rng.device) % self.items
        else:
            item = torch.randint(0, self.items, (n,), generator=rng, device=rng.device)
        targets = self.answer.to(rng.device)[item].unsqueeze(-1)
        return Batch(item.unsqueeze(-1), targets, torch.ones_like(targets, dtype=torch.bool), {"item": item})

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 answers"]:
        known = self.answer.to(batch.inputs.device)[batch.inputs[:, -1:]]
        return torch.nn.functional.one_hot(known, self.outputs).double().log()
