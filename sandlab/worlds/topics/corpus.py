"""A corpus of topic documents that is drawn once, with masks that stay or change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer
from sandlab.random import rng as seeded_rng
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.topics.documents import DisjointTopics, LDATopics, TopicWorld

__all__ = ["TopicCorpus"]

PUBLISHED = LDATopics()


@register("worlds")
@dataclass(frozen=True)
class TopicCorpus(World):
    """Documents of a fixed corpus, drawn with replacement; every run of a training sees the same corpus.

    world         what the corpus was drawn from
    documents     how many
    seed          of the corpus
    static_mask   True: masks are drawn once, with the corpus; False: each time a document is drawn
    """

    world: TopicWorld = PUBLISHED
    documents: int = 10_000
    seed: int = 0
    static_mask: bool = False

    def __post_init__(self) -> None:
        integer("documents", self.documents, low=1)
        integer("seed", self.seed, low=0)

    @property
    def vocab(self) -> int:
        return self.world.vocab

    @property
    def outputs(self) -> int:
        return self.world.outputs

    @property
    def letters(self) -> list[str]:
        return self.world.letters

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        rows = torch.randint(self.documents, (n,), generator=rng, device=rng.device)
        drawn = _corpus(self, str(rng.device))[rows]
        if self.static_mask:
            return drawn
        return self.world.mask(drawn.truth["words"], drawn.truth["weights"], rng=rng)

    def oracle(self, batch: Batch) -> Float[Tensor, "batch time outputs"]:
        """That of the world of the documents: what is best for documents that are not in the corpus."""
        if not isinstance(self.world, DisjointTopics):
            raise NotImplementedError(f"{type(self.world).__name__} has no exact oracle")
        return self.world.oracle(batch)


@lru_cache(maxsize=8)
def _corpus(world: TopicCorpus, device: str) -> Batch:
    """All documents, masked once."""
    return world.world.sample(world.documents, rng=seeded_rng(world.seed, "corpus")).to(device)
