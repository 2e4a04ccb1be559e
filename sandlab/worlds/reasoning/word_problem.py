"""The word problem of a group: is the product of the letters the identity?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import flag, integer
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.reasoning.actions import GroupAction, as_action, regular_action
from sandlab.worlds.reasoning.clauses import certain
from sandlab.worlds.reasoning.lego import Lego, track_values

__all__ = ["WordProblem"]


@register("worlds")
@dataclass(frozen=True)
class WordProblem(World):
    """Decide whether g_1∘…∘g_L = e; NC¹-complete for groups that are not solvable, such as S_5 (Barrington 1989).

    group      an action whose group gives the letters
    length     L
    balanced   half of the words are the identity (the last letter is then the inverse of the rest); else all uniform

    The rightmost letter acts first, so a LEGO chain that decides it applies the letters in reversed order. One chain
    under the regular action decides; under the natural action of S_n it takes n − 1 starts. truth["product"].

    Source: Huang et al. 2025, Definition 2.1, Theorem 2.1.
    """

    group: str | GroupAction = "S5"
    length: int = 8
    balanced: bool = True

    def __post_init__(self) -> None:
        as_action(self.group)
        integer("length", self.length, low=1)
        flag("balanced", self.balanced)

    @property
    def action(self) -> GroupAction:
        return as_action(self.group)

    @property
    def vocab(self) -> int:
        return self.action.elements

    @property
    def outputs(self) -> int:
        return 2

    @property
    def letters(self) -> list[str]:
        return [f"g{i}" for i in range(self.vocab)]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        words = torch.randint(self.vocab, (n, self.length), generator=rng, device=rng.device)
        if self.balanced:
            inverse = torch.tensor([self.action.inverse(g) for g in range(self.vocab)], device=rng.device)
            closing = (
                inverse[self.product(words[:, :-1])]
                if self.length > 1
                else torch.full_like(words[:, 0], self.action.identity)
            )
            solved = torch.rand(n, generator=rng, device=rng.device) < 0.5
            words[:, -1] = torch.where(solved, closing, words[:, -1])
        product = self.product(words)
        answers = (product == self.action.identity).long().unsqueeze(1)
        return Batch(words, answers, torch.ones_like(answers, dtype=torch.bool), {"product": product})

    def product(self, words: Int[Tensor, "n letter"]) -> Int[Tensor, "n"]:
        """g_1∘…∘g_L: the value of the regular chain of the reversed word, started at the identity."""
        products = torch.as_tensor(self.action.group.products, device=words.device)
        start = torch.full((len(words),), self.action.identity, device=words.device)
        return track_values(words.flip(1), start, products, products)[:, -1]

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 2"]:
        return certain((self.product(batch.inputs) == self.action.identity).long().unsqueeze(1), 2)

    def as_lego(self, words: Int[Tensor, "n letter"], start: int, *, natural: bool = False) -> tuple[Lego, Batch]:
        """The words as LEGO chains from one start value, under the regular or the given action.

        The word is the identity when the regular chain ends where it began; under the natural action when the chains of
        |Y| − 1 starts all do.
        """
        action = self.action if natural else regular_action(self.action)
        world = Lego(action, variables=words.shape[1] + 1, length=words.shape[1])
        begin = torch.full((len(words),), start, device=words.device)
        values = track_values(words.flip(1), begin, *world.tables(words.device))
        names = torch.arange(words.shape[1] + 1, device=words.device).expand(len(words), -1)
        return world, world.compose(names, words.flip(1), values)
