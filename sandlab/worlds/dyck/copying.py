"""Copying brackets: a task that needs no attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.dyck.language import Dyck

__all__ = ["DyckCopy"]


@register("worlds")
@dataclass(frozen=True)
class DyckCopy(World):
    """Dyck prefixes whose target at each position is the token there: the residual stream alone can do it.

    types, depth, length   k, D, N of the prefixes (see `Dyck`); START is the first of the N tokens
    Source: Wen, Li, Liu & Risteski 2023, §5.
    """

    types: int = 2
    depth: int = 4
    length: int = 28

    def __post_init__(self) -> None:
        integer("types", self.types, low=1)
        integer("depth", self.depth, low=1)
        integer("length", self.length, low=1)

    @property
    def brackets(self) -> Dyck:
        """The language the tokens are drawn from."""
        return Dyck(self.types, self.depth, self.length)

    @property
    def vocab(self) -> int:
        return self.brackets.vocab

    @property
    def letters(self) -> list[str]:
        return self.brackets.letters

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        tokens = self.brackets.sample(n, rng=rng).inputs
        return Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool))

    def oracle(self, batch: Batch) -> Float[Tensor, "n time token"]:
        """0 for the token itself, −∞ for every other."""
        return F.one_hot(batch.inputs, self.vocab).double().log()
