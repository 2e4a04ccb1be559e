"""A balanced prefix put before Dyck words: the change of input behind the contrastive penalty of Wen et al. 2023."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.errors import integer
from sandlab.worlds.base import Batch

__all__ = ["NestedPrefix"]


@dataclass(frozen=True)
class NestedPrefix:
    """START w ↦ START p w, where p are nested pairs of random types, 1 to `depth` of them (the same number in a batch).

    Nested pairs leave the stack as it was, so a model that has learnt the language gives the same logits on w:
    `Penalised(CrossEntropy(), (InvariantLogits(NestedPrefix(types=2, depth=4), strength=0.3),))`.
    """

    types: int = 2
    depth: int = 4

    def __post_init__(self) -> None:
        integer("types", self.types, low=1)
        integer("depth", self.depth, low=1)

    def __call__(self, batch: Batch, rng: torch.Generator) -> tuple[Int[Tensor, "word longer"], int]:
        """The inputs with a prefix put in, and how many of the last positions are the original inputs."""
        pairs = int(torch.randint(1, self.depth + 1, (1,), generator=rng, device=rng.device))
        opens = 2 * torch.randint(self.types, (len(batch.inputs), pairs), generator=rng, device=rng.device)
        start, word = batch.inputs[:, :1], batch.inputs[:, 1:]
        return torch.cat([start, opens, opens.flip(1) + 1, word], 1), batch.inputs.shape[1]
