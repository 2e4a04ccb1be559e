"""Mixtures of sandboxes: every sequence comes from one of several worlds, and its first token says which."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import BadInput, flag, require
from sandlab.registry import register
from sandlab.worlds.automata.counters import Cyclic
from sandlab.worlds.base import Batch, World
from sandlab.worlds.recall import InductionTask

__all__ = ["Mixture"]


@register("worlds")
@dataclass(frozen=True)
class Mixture(World):
    """Each sequence is drawn from one of the parts; a task token stands before it.

    parts      worlds of token sequences, each with one number of tokens and of targets
    weights    how often each is drawn (None: equally often)
    task_token   False: the model must find out by itself which world it reads
    disjoint   every part has tokens and classes of its own; else all parts share 0, 1, 2, …

    Task tokens are the last ones of the vocabulary. Sequences shorter than the longest are filled up at the end with token
    0, where nothing is counted. truth["part"]: which world. The oracle is that of the part, given its name.

    Source: the tutorial "Sandbox for the blackbox", open questions: single sandboxes against mixtures.
    """

    parts: tuple[World, ...] = (Cyclic(size=2, length=24), InductionTask(states=8, length=24))
    weights: tuple[float, ...] | None = None
    task_token: bool = True
    disjoint: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        require(len(self.parts) >= 1, "parts", self.parts, "at least one world")
        if self.weights is not None:
            object.__setattr__(self, "weights", tuple(self.weights))
            fits = len(self.weights) == len(self.parts) and min(self.weights) >= 0 and sum(self.weights) > 0
            require(fits, "weights", self.weights, f"{len(self.parts)} numbers of at least 0, not all 0")
        flag("task_token", self.task_token)
        flag("disjoint", self.disjoint)
        for index, part in enumerate(self.parts):
            one = part.sample(1, rng=torch.Generator().manual_seed(0))
            if one.inputs.is_floating_point() or one.inputs.ndim != 2 or one.soft:
                raise BadInput(f"part {index} of the mixture is not a world of token sequences with classes as targets")

    @property
    def letter_offsets(self) -> tuple[int, ...]:
        """The first token of each part."""
        return self._offsets([part.vocab for part in self.parts])

    @property
    def class_offsets(self) -> tuple[int, ...]:
        return self._offsets([part.outputs for part in self.parts])

    def _offsets(self, sizes: list[int]) -> tuple[int, ...]:
        return tuple(sum(sizes[:index]) if self.disjoint else 0 for index in range(len(sizes)))

    @property
    def shared(self) -> int:
        """Tokens besides the task tokens."""
        return max(offset + part.vocab for offset, part in zip(self.letter_offsets, self.parts))

    @property
    def vocab(self) -> int:
        return self.shared + (len(self.parts) if self.task_token else 0)

    @property
    def outputs(self) -> int:
        return max(offset + part.outputs for offset, part in zip(self.class_offsets, self.parts))

    @cached_property
    def length(self) -> int:
        """Tokens of a sequence, the task token included."""
        one = torch.Generator().manual_seed(0)
        longest = max(part.sample(1, rng=one).inputs.shape[1] for part in self.parts)
        return longest + self.task_token

    @property
    def letters(self) -> list[str]:
        named = [str(token) for token in range(self.shared)]
        return [*named, *(f"<{index}>" for index in range(self.vocab - self.shared))]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        weights = torch.tensor(self.weights or (1.0,) * len(self.parts), device=rng.device)
        chosen = torch.multinomial(weights, n, replacement=True, generator=rng)
        # Every part gives n examples and each row takes that of its part: shapes do not depend on the draw.
        batches = [self._padded(index, part.sample(n, rng=rng)) for index, part in enumerate(self.parts)]
        return self._choose(batches, chosen)

    def part(self, index: int) -> Mixture:
        """The mixture in which only one part is drawn: the same tokens, lengths and task token."""
        weights = tuple(float(each == index) for each in range(len(self.parts)))
        return Mixture(self.parts, weights, self.task_token, self.disjoint)

    def _padded(self, index: int, batch: Batch) -> Batch:
        """A part's batch with its task token, in the mixture's tokens, filled up to the mixture's length."""
        time, lead = batch.inputs.shape[1], int(self.task_token)
        before, after = lead + time - batch.mask.shape[1], self.length - lead - time
        inputs = batch.inputs + self.letter_offsets[index]
        if self.task_token:
            inputs = F.pad(inputs, (1, 0), value=self.shared + index)
        targets = (batch.targets + self.class_offsets[index]).clamp(min=0)
        return Batch(
            F.pad(inputs, (0, after)), F.pad(targets, (before, after)), F.pad(batch.mask, (before, after), value=False)
        )

    def _choose(self, batches: list[Batch], chosen: Tensor) -> Batch:
        row = torch.arange(len(chosen), device=chosen.device)
        inputs, targets, mask = (
            torch.stack([getattr(batch, name) for batch in batches])[chosen, row] for name in ("inputs", "targets", "mask")
        )
        return Batch(inputs, targets, mask, {"part": chosen})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time outputs"]:
        """The parts' own oracles, each row by that of its part (which the task token names)."""
        result = torch.full((*batch.mask.shape, self.outputs), -torch.inf, dtype=torch.float64, device=batch.mask.device)
        lead, one = int(self.task_token), torch.Generator().manual_seed(0)
        for index, part in enumerate(self.parts):
            rows = (batch.truth["part"] == index).nonzero().squeeze(-1)
            if not len(rows):
                continue
            alike = part.sample(1, rng=one)
            time, counted = alike.inputs.shape[1], alike.mask.shape[1]
            start, stop = lead + time - counted, lead + time
            first = self.class_offsets[index]
            own = Batch(
                batch.inputs[rows, lead:stop] - self.letter_offsets[index],
                batch.targets[rows, start:stop] - first, batch.mask[rows, start:stop],
            )  # fmt: skip
            predicted = part.oracle(own)[:, -counted:]
            place = torch.arange(start, stop, device=rows.device)
            result[rows.unsqueeze(-1), place, first : first + part.outputs] = predicted
        return result
