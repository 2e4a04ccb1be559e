"""Rubik's cube: six face turns permute 48 stickers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import integer
from sandlab.registry import register
from sandlab.worlds.automata._running.scan import compose_maps, prefix_products
from sandlab.worlds.base import Batch, World

__all__ = ["RUBIK_TURNS", "RubiksCube"]

STICKERS = 48
# Cycles of a quarter turn of each face; stickers are numbered 1 to 48 on the faces top, left, front, right, rear,
# bottom, eight on each (centres do not move).
RUBIK_TURNS = {
    "U": [(1, 3, 8, 6), (2, 5, 7, 4), (9, 33, 25, 17), (10, 34, 26, 18), (11, 35, 27, 19)],
    "L": [(9, 11, 16, 14), (10, 13, 15, 12), (1, 17, 41, 40), (4, 20, 44, 37), (6, 22, 46, 35)],
    "F": [(17, 19, 24, 22), (18, 21, 23, 20), (6, 25, 43, 16), (7, 28, 42, 13), (8, 30, 41, 11)],
    "R": [(25, 27, 32, 30), (26, 29, 31, 28), (3, 38, 43, 19), (5, 36, 45, 21), (8, 33, 48, 24)],
    "B": [(33, 35, 40, 38), (34, 37, 39, 36), (3, 9, 46, 32), (2, 12, 47, 29), (1, 14, 48, 27)],
    "D": [(41, 43, 48, 46), (42, 45, 47, 44), (14, 22, 30, 38), (15, 23, 31, 39), (16, 24, 32, 40)],
}


@register("worlds")
@dataclass(frozen=True)
class RubiksCube(World):
    """Random quarter turns of the six faces; the target is the position of one watched sticker.

    The group has 43 252 003 274 489 856 000 elements, so a state is kept as a permutation of the 48 stickers
    (`truth["states"]`: position of each sticker), not as a number.
    """

    length: int = 100
    watch: int = 1

    def __post_init__(self) -> None:
        integer("length", self.length, 1)
        integer("watch", self.watch, 1, STICKERS, "stickers are numbered 1 to 48")

    @property
    def vocab(self) -> int:
        return len(RUBIK_TURNS)

    @property
    def outputs(self) -> int:
        return STICKERS

    @property
    def letters(self) -> list[str]:
        return list(RUBIK_TURNS)

    @cached_property
    def turns(self) -> Int[Tensor, "letter sticker"]:
        """turns[letter, position] = the position a sticker there moves to (positions from 0)."""
        maps = torch.arange(STICKERS).repeat(len(RUBIK_TURNS), 1)
        for letter, cycles in enumerate(RUBIK_TURNS.values()):
            for cycle in cycles:
                for origin, goal in zip(cycle, cycle[1:] + cycle[:1]):
                    maps[letter, origin - 1] = goal - 1
        return maps

    def run(self, words: Int[Tensor, "example time"]) -> Int[Tensor, "example time sticker"]:
        """Where each sticker is after each turn, by associative scan over permutations."""
        return prefix_products(self.turns.to(words.device)[words.T], compose_maps).transpose(0, 1)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        words = torch.randint(self.vocab, (n, self.length), generator=rng, device=rng.device)
        states = self.run(words)
        mask = torch.ones_like(words, dtype=torch.bool)
        return Batch(words, states[..., self.watch - 1], mask, {"states": states})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time sticker"]:
        """The turns determine the position."""
        return torch.nn.functional.one_hot(self.run(batch.inputs)[..., self.watch - 1], STICKERS).double().log()
