"""What masked worlds of words share: the masking, and marks that tell an encoder where to read out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.errors import integer
from sandlab.worlds.base import Batch, World
from sandlab.worlds.topics.documents import corrupt
from sandlab.worlds.topics.masking import check_masking

__all__ = ["MaskedWords"]


@dataclass(frozen=True)
class MaskedWords(World):
    """Documents whose words are masked as in `corrupt`. Token 0 is [MASK]; the last of `outputs` tokens is the filler.

    rate, keep, swap   p_m, p_c, p_r
    marked             0: every position has a target. k: predicted tokens come as a second alphabet, token + outputs,
                       and there are k targets, those of the last k marked positions. `MaskedEncoder` does not see the
                       marks; it computes its logits there alone, which saves most of the work of a large vocabulary
    """

    rate: float = 0.15
    keep: float = 0.1
    swap: float = 0.1
    marked: int = 0

    def __post_init__(self) -> None:
        check_masking(self.rate, self.keep, self.swap)
        integer("marked", self.marked, low=0)

    @property
    @abstractmethod
    def words(self) -> int:
        """Number of words: tokens 1 … words."""

    @property
    def filler(self) -> int:
        """The token after the end of a document."""
        return self.words + 1

    @property
    def outputs(self) -> int:
        return self.words + 2

    @property
    def vocab(self) -> int:
        return self.outputs * (2 if self.marked else 1)

    def mask(self, words: Int[Tensor, "n time"], truth: dict[str, Tensor], *, rng: torch.Generator) -> Batch:
        """Documents with some of their words masked; the filler never is."""
        real = words != self.filler
        shown, predicted = corrupt(words, self.words, rate=self.rate, keep=self.keep, swap=self.swap, rng=rng)
        predicted = predicted & real
        shown, truth = torch.where(real, shown, self.filler), truth | {"words": words}
        if not self.marked:
            return Batch(shown, torch.where(real, words, 0), predicted, truth)
        places = predicted.int().argsort(dim=1, stable=True)[:, -self.marked :]
        targets, counted = words.gather(1, places), predicted.gather(1, places)
        return Batch(shown + self.outputs * predicted, torch.where(counted, targets, 0), counted, truth)
