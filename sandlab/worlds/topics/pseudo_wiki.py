"""Documents like those of an encyclopaedia, made up: Zipf's law, stop words, topics that overlap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import integer, number
from sandlab.registry import register
from sandlab.worlds.base import Batch, Predictor
from sandlab.worlds.topics.masked import MaskedWords

__all__ = ["PseudoWiki"]


@register("worlds")
@dataclass(frozen=True)
class PseudoWiki(MaskedWords):
    """Each position: with probability `stop_rate` a stop word, else a topic of θ ~ Dirichlet(α), then one of its words.

        p(w | t) ∝ g_tw / rank(w),   g_tw ~ Gamma(sparsity) independent,   p(stop word s) ∝ 1/s

    size, stops     number of words in all, of which tokens 1 … stops are stop words
    topics          K
    sparsity        shape of the Gamma law: small ones give words to few topics
    concentration   α
    lengths         shortest and longest document; uniform between
    seed            of the topics
    """

    size: int = 3000
    topics: int = 20
    stops: int = 100
    stop_rate: float = 0.4
    sparsity: float = 0.05
    concentration: float = 0.1
    lengths: tuple[int, int] = (64, 256)
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("topics", self.topics, low=1)
        integer("stops", self.stops, low=1)
        integer("size", self.size, low=self.stops + 2)
        number("stop_rate", self.stop_rate, low=0.0, high=1.0)
        for name in ("sparsity", "concentration"):
            number(name, getattr(self, name), low=1e-3)
        integer("lengths", self.lengths[0], low=1)
        integer("lengths", self.lengths[1], low=self.lengths[0])
        integer("seed", self.seed, low=0)

    @property
    def words(self) -> int:
        return self.size

    @property
    def letters(self) -> list[str]:
        content = [f"w{word}" for word in range(1, self.size - self.stops + 1)]
        once = ["_", *(f"the{word}" for word in range(1, self.stops + 1)), *content, "·"]
        return once if not self.marked else [*once, *(f"({letter})" for letter in once)]

    @cached_property
    def topic_law(self) -> Float[np.ndarray, "topics outputs"]:
        """p(token | topic), without stop words."""
        content = self.size - self.stops
        gamma = np.random.default_rng(self.seed).gamma(self.sparsity, size=(self.topics, content))
        # A topic all of whose draws underflow would have no words: it then has the common ones.
        weight = (gamma + 1e-12) / np.arange(1, content + 1)
        law = np.zeros((self.topics, self.outputs))
        law[:, 1 + self.stops : -1] = weight / weight.sum(1, keepdims=True)
        return law

    @cached_property
    def stop_law(self) -> Float[np.ndarray, " outputs"]:
        """p(token | stop word)"""
        law = np.zeros(self.outputs)
        law[1 : 1 + self.stops] = 1 / np.arange(1, self.stops + 1)
        return law / law.sum()

    @property
    def is_stop(self) -> np.ndarray:
        """Which tokens are stop words, [MASK] or the filler."""
        token = np.arange(self.outputs)
        return (token <= self.stops) | (token == self.filler)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        device, longest = rng.device, self.lengths[1]
        shape = torch.full((n, self.topics), self.concentration, dtype=torch.float64, device=device)
        weights = torch._standard_gamma(shape, generator=rng) + 1e-300
        weights = weights / weights.sum(1, keepdim=True)
        words = self._words(weights, rng)
        lengths = torch.randint(self.lengths[0], longest + 1, (n, 1), generator=rng, device=device)
        real = torch.arange(longest, device=device) < lengths
        return self.mask(torch.where(real, words, self.filler), {"weights": weights}, rng=rng)

    def _words(self, weights: Float[Tensor, "n topics"], rng: torch.Generator) -> Int[Tensor, "n time"]:
        """Words of each position: the row of the table (its topic, or the stop words), then a word of the row."""
        stop = torch.full_like(weights[:, :1], self.stop_rate)
        edges = torch.cat([(1 - self.stop_rate) * weights, stop], 1).cumsum(1)
        which, inside = (
            torch.rand(len(weights), self.lengths[1], generator=rng, device=rng.device, dtype=torch.float64)
            for _ in range(2)
        )
        row = torch.searchsorted(edges, which * edges[:, -1:], right=True).clamp(max=self.topics)
        table = _table(self, str(rng.device))
        # Row r of the flat table runs from r to r + 1, so that one search serves all rows.
        place = torch.searchsorted(table, row + inside * (1 - 1e-12), right=True) - row * self.outputs
        return place.clamp(1, self.words)

    def baselines(self) -> dict[str, Predictor]:
        """The prediction that knows the topic weights of the document, but not what the position itself shows."""
        return {"known weights": partial(_known_weights, world=self)}


def _known_weights(batch: Batch, world: PseudoWiki) -> Float[Tensor, "batch time outputs"]:
    law, stops = (torch.from_numpy(each).to(batch.inputs.device) for each in (world.topic_law, world.stop_law))
    mixed = (1 - world.stop_rate) * batch.truth["weights"] @ law + world.stop_rate * stops
    return mixed.log()[:, None].expand(-1, batch.mask.shape[1], -1)


@lru_cache(maxsize=8)
def _table(world: PseudoWiki, device: str) -> Float[Tensor, " cells"]:
    """Cumulative word probabilities of each topic and of the stop words, one after another."""
    rows = np.concatenate([world.topic_law, world.stop_law[None]]).cumsum(1)
    rows = rows / rows[:, -1:] + np.arange(world.topics + 1)[:, None]
    return torch.from_numpy(rows.ravel()).to(device)
