"""Documents that have more topics the longer they are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.topics.documents import TopicWorld

__all__ = ["GrowingTopics"]


@register("worlds")
@dataclass(frozen=True)
class GrowingTopics(TopicWorld):
    """Documents of N words with 1 + ⌊(T − 1)(N − shortest)/(longest − shortest)⌋ of T topics, all equally likely.

    Attention of 1/N is then lower for words of different topics than for words of one, though the model knows nothing
    of topics: long documents hold most pairs of different topics (§2.1.5.4 of Li 2024).
    """

    lengths: tuple[int, int] = (20, 200)

    def present(self, lengths: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        """Number of topics of documents of these lengths."""
        shortest, longest = self.lengths
        return 1 + (self.topics - 1) * (lengths - shortest) // max(1, longest - shortest)

    def weights(self, n: int, rng: torch.Generator) -> Float[Tensor, "n topics"]:
        return self._weights(self._lengths(n, rng), rng)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        lengths = self._lengths(n, rng)
        weights = self._weights(lengths, rng)
        real = torch.arange(self.lengths[1], device=rng.device) < lengths
        return self.mask(torch.where(real, self._words(weights, rng), self.filler), weights, rng=rng)

    def _lengths(self, n: int, rng: torch.Generator) -> Int[Tensor, "n 1"]:
        return torch.randint(self.lengths[0], self.lengths[1] + 1, (n, 1), generator=rng, device=rng.device)

    def _weights(self, lengths: Int[Tensor, "n 1"], rng: torch.Generator) -> Float[Tensor, "n topics"]:
        order = torch.rand(len(lengths), self.topics, generator=rng, device=rng.device).argsort(1)
        present = self.present(lengths)
        return (order < present).double() / present
