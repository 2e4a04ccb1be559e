"""Curricula: worlds that change during training."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.worlds.base import Batch, World

__all__ = ["Curriculum"]


@dataclass(frozen=True)
class Curriculum(World):
    """One world after another: `stages` are pairs (first step, world), in order, the first at step 0.

    `train` draws from the stage of each step; examples drawn from the curriculum itself are those of its last stage.
    """

    stages: tuple[tuple[int, World], ...]

    def __post_init__(self) -> None:
        starts = [start for start, _ in self.stages]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise BadInput(f"the stages of a curriculum must start at 0 and then at increasing steps, got {starts}")

    @property
    def last(self) -> World:
        return self.stages[-1][1]

    @property
    def vocab(self) -> int:
        return max(world.vocab for _, world in self.stages)

    @property
    def outputs(self) -> int:
        return max(world.outputs for _, world in self.stages)

    def at(self, step: int) -> World:
        return [world for start, world in self.stages if start <= step][-1]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        return self.last.sample(n, rng=rng)

    def oracle(self, batch: Batch) -> Tensor:
        return self.last.oracle(batch)
