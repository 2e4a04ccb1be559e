"""Strings of any world with some tokens hidden: what a masked language model is trained on."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.dyck.language import Dyck
from sandlab.worlds.parallel.families import MaskedWorld

__all__ = ["HiddenTokens"]


@register("worlds")
@dataclass(frozen=True)
class HiddenTokens(MaskedWorld):
    """The first `sites` targets of another world's examples, of which a uniformly drawn number is [MASK].

    world    a world of strings; its targets must be tokens below `alphabet`
    hidden   how many tokens are hidden; None: a uniform number from 1 to `sites` in each example
    """

    world: World = field(default_factory=lambda: Dyck(types=2, depth=3, length=10, words="complete"))
    sites: int = 10
    alphabet: int = 4
    hidden: int | None = None

    def __post_init__(self) -> None:
        integer("sites", self.sites, low=1)
        integer("alphabet", self.alphabet, low=2)
        if self.hidden is not None:
            integer("hidden", self.hidden, low=1, high=self.sites)

    @property
    def symbols(self) -> int:
        return self.alphabet

    @property
    def letters(self) -> list[str]:
        return [*self.world.letters[: self.alphabet], "?"]

    def draw(self, n: int, *, rng: torch.Generator) -> Int[Tensor, "n site"]:
        tokens = self.world.sample(n, rng=rng).targets[:, : self.sites]
        fits = tokens.shape[1] == self.sites and int(tokens.max()) < self.alphabet
        require(fits, "world", type(self.world).__name__, f"one of {self.sites} tokens below {self.alphabet}")
        return tokens

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        tokens = self.draw(n, rng=rng)
        order = torch.rand(tokens.shape, generator=rng, device=rng.device).argsort(-1).argsort(-1)
        count = 1 + torch.randint(self.sites, (n, 1), generator=rng, device=rng.device)
        return self.show(tokens, order < (count if self.hidden is None else self.hidden))

    def oracle(self, batch: Batch) -> Tensor:
        raise NotImplementedError("the conditionals of hidden tokens are not known for every world")
