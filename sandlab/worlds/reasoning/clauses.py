"""Clauses of five tokens: what the worlds and models of this chapter read and predict.

A sequence is a list of clauses, laid end to end. A clause predicts the fourth and fifth token of the next one (all
five with `predict_blanks`), so that there are two (five) targets per predicting clause.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.worlds.base import Batch, World

__all__ = ["SLOTS", "ClauseWorld", "certain", "distinct"]

SLOTS = 5
"""Tokens of a clause: produced variable, action, consumed variable, answered variable, value."""


def distinct(n: int, count: int, among: int, rng: torch.Generator) -> Int[Tensor, "example count"]:
    """For each example, `count` distinct integers below `among`, in random order."""
    return torch.rand(n, among, generator=rng, device=rng.device).argsort(-1)[:, :count]


def certain(answers: Int[Tensor, "*lead"], classes: int) -> Float[Tensor, "*lead classes"]:
    """Log-probabilities of a certain prediction: 0 for the answer, −∞ for all other classes."""
    return torch.eye(classes, dtype=torch.float64, device=answers.device).log()[answers]


@dataclass(frozen=True)
class ClauseWorld(World):
    """A world of clauses; the last token of its vocabulary is the blank."""

    @property
    def blank(self) -> int:
        return self.vocab - 1

    @cached_property
    def _names(self) -> list[str]:
        return self.letters

    def clause(self, n: int, count: int, device: torch.device, **slots: Tensor) -> Int[Tensor, "n count slot"]:
        """`count` clauses per example, blank but for the given slots: `slot1=variables, slot2=actions, …`."""
        made = torch.full((n, count, SLOTS), self.blank, device=device)
        for name, tokens in slots.items():
            made[..., int(name[-1]) - 1] = tokens
        return made

    def batch(
        self, clauses: Int[Tensor, "n clause slot"], targets: Int[Tensor, "n step target"],
        mask: Bool[Tensor, "n step target"], truth: dict[str, Tensor],
    ) -> Batch:  # fmt: skip
        """Clauses as flat tokens, and the targets of the last ones."""
        return Batch(clauses.flatten(1), targets.flatten(1), mask.flatten(1), truth)

    def render(self, tokens: Tensor) -> str:
        letters = self._names
        return "; ".join(
            " ".join(letters[int(token)] for token in clause if int(token) != self.blank)
            for clause in tokens.view(-1, SLOTS)
        )
