"""Where a training step's batch comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.learning.objectives import MemberBatch, Objective
from sandlab.worlds.base import Batch

__all__ = ["Curriculum", "Source", "stack_members"]


@dataclass(frozen=True)
class Curriculum:
    """Different worlds in different phases: `stages` are (first step, world), in order, the first at step 0."""

    stages: tuple[tuple[int, Any], ...]

    def __post_init__(self) -> None:
        starts = [start for start, _ in self.stages]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise BadInput(
                f"the stages of a curriculum must start at 0 and then at later and later steps, got {starts}"
            )

    def at(self, step: int) -> Any:
        """The world of this step."""
        return [world for start, world in self.stages if start <= step][-1]


@dataclass(frozen=True)
class Source:
    """Fresh batches of a world, as the objective wants them, on the model's device.

    members   how many members have examples of their own; 0 when one batch serves all
    """

    world: Any
    batch_size: int
    rng: torch.Generator
    objective: Objective
    device: torch.device
    members: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.rng, torch.Generator):
            raise BadInput(f"rng must be a torch generator, got {self.rng!r}: use rng=sl.rng(0)")
        if not hasattr(self.world, "sample") and not hasattr(self.world, "at"):
            raise BadInput(f"world must have a method sample(n, rng=…), got {type(self.world).__name__}")

    def draw(self, step: int) -> Batch:
        """The next batch; `step` only decides the stage of a curriculum."""
        world = self.world.at(step) if hasattr(self.world, "at") else self.world
        batch = world.sample(self.batch_size * max(1, self.members), rng=self.rng)
        prepare = getattr(self.objective, "prepare", None)
        if prepare is not None:
            batch = prepare(batch, rng=self.rng)
        if batch.inputs.device != self.device:
            batch = batch.to(self.device)
        return stack_members(batch, self.members) if self.members else batch

    def peek(self, step: int) -> Batch:
        """A batch like the next one; the generator stays where it is."""
        state = self.rng.get_state()
        batch = self.draw(step)
        self.rng.set_state(state)
        return batch


def stack_members(batch: Batch, members: int) -> MemberBatch:
    """members · n examples as n for each member."""

    def part(value: Tensor) -> Tensor:
        return value.unflatten(0, (members, -1))

    truth = {name: part(value) for name, value in batch.truth.items()}
    return MemberBatch(part(batch.inputs), part(batch.targets), part(batch.mask), truth)
