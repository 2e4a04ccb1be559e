"""Where the batch of each update comes from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.learning.objectives import MemberBatch, Objective
from sandlab.worlds.base import Batch, World

__all__ = ["Pool", "Source", "tensors_of"]


@dataclass
class Source:
    """Fresh batches of a world, prepared by the objective, on the model's device.

    members   how many members have their own examples; 0 when one batch serves all
    """

    world: World
    batch_size: int
    rng: torch.Generator
    objective: Objective
    device: torch.device
    members: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.rng, torch.Generator):
            raise BadInput(f"rng must be a torch generator, got {self.rng!r}: use rng=sl.rng(0)")
        if not isinstance(self.world, World):
            raise BadInput(f"world must be a World, got {type(self.world).__name__}: derive it from sl.worlds.World")

    def draw(self, step: int) -> Batch:
        """The next batch; `step` only decides the stage of a curriculum."""
        batch = self.world.at(step).sample(self.batch_size * max(1, self.members), rng=self.rng)
        batch = self.objective.prepare(batch, self.rng)
        if batch.inputs.device != self.device:
            batch = batch.to(self.device)
        return MemberBatch.split(batch, self.members) if self.members else batch

    def peek(self, step: int) -> Batch:
        """A batch like the next one; the generator stays where it is."""
        state = self.rng.get_state()
        batch = self.draw(step)
        self.rng.set_state(state)
        return batch

    @property
    def varies(self) -> bool:
        """Whether the world depends on the step."""
        return self.world.at(0) is not self.world


class Pool(Source):
    """The batches of all steps, drawn once: each member gets the one that its clock (updates done) points to."""

    def __init__(self, source: Source, steps: int, clock: Tensor) -> None:
        super().__init__(source.world, source.batch_size, source.rng, source.objective, source.device)
        batches = [source.draw(step) for step in range(steps)]
        if len({batch.inputs.shape for batch in batches}) > 1:
            raise BadInput("the world's batches differ in length from step to step: use one length to stream")
        self.clock, self.names = clock, tuple(batches[0].truth)
        self.tensors = [torch.stack(values) for values in zip(*map(tensors_of, batches))]

    def draw(self, step: int) -> MemberBatch:
        index = self.clock.clamp(max=len(self.tensors[0]) - 1)
        inputs, targets, mask, *truth = (kept[index] for kept in self.tensors)
        return MemberBatch(inputs, targets, mask, dict(zip(self.names, truth)))


def tensors_of(batch: Batch) -> list[Tensor]:
    """Every tensor of a batch, in a fixed order."""
    return [batch.inputs, batch.targets, batch.mask, *batch.truth.values()]
