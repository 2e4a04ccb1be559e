"""Whole answers: a sequence counts when every one of its counted tokens is right."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.learning.experiment import Snapshot
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.expressivity.program_tasks import ProgramTask
from sandlab.worlds.mixture import Mixture

__all__ = ["MatchBySize", "PartAccuracy", "exact_match", "only_part"]


@register("lenses")
def exact_match(model: nn.Module, batch: Batch) -> Float[Tensor, "*member"]:
    """Share of sequences whose counted tokens are all predicted, given the true ones before each."""
    with evaluating(model), torch.no_grad():
        chosen = log_predictions(model, batch).argmax(-1)
    wrong = (chosen != batch.targets) & batch.mask
    return (~wrong.any(-1)).double().mean(-1)


@dataclass(frozen=True)
class MatchBySize:
    """A probe: `exact_match` on fresh words of each size, "match" (member, size)."""

    sizes: tuple[int, ...]
    examples: int = 256

    def __call__(self, now: Snapshot) -> dict[str, Tensor]:
        assert isinstance(now.world, ProgramTask)
        found = []
        for size in self.sizes:
            world = replace(now.world, shortest=size, longest=size, room=None)
            found.append(exact_match(now.model, world.sample(self.examples, rng=now.rng(0, "size", size))))
        return {"match": torch.stack(found, -1)}


def only_part(world: Mixture, part: int) -> Mixture:
    """The mixture from which only one part is drawn: the same tokens, lengths and task token."""
    return replace(world, weights=tuple(float(each == part) for each in range(len(world.parts))))


@dataclass(frozen=True)
class PartAccuracy:
    """A probe: accuracy on each part of a mixture, "parts" (member, part)."""

    examples: int = 512

    def __call__(self, now: Snapshot) -> dict[str, Tensor]:
        assert isinstance(now.world, Mixture)
        found = []
        for part in range(len(now.world.parts)):
            batch = only_part(now.world, part).sample(self.examples, rng=now.rng(0, "part", part))
            with evaluating(now.model), torch.no_grad():
                right = log_predictions(now.model, batch).argmax(-1) == batch.targets
            found.append((right & batch.mask).sum((-1, -2)) / batch.mask.sum())
        return {"parts": torch.stack(found, -1)}
