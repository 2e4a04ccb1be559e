"""Training of translation models: to repair corrupted answers over several stages, or to write token by token."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sandlab.errors import BadInput, choice, integer, number
from sandlab.learning.objectives import Forward, Objective, member_loss
from sandlab.worlds.base import Batch
from sandlab.worlds.parallel.translation import END, MASK, PAD, RESERVED, START

__all__ = ["RefinementLoss", "TeacherForcing", "corrupt", "stutters"]


def stutters(tokens: Int[Tensor, "*lead time"]) -> Bool[Tensor, "*lead time"]:
    """Where a token equals its left neighbour; the second of the two is marked, padding never."""
    same = (tokens[..., 1:] == tokens[..., :-1]) & (tokens[..., 1:] >= RESERVED)
    return torch.nn.functional.pad(same, (1, 0))


def corrupt(
    target: Int[Tensor, "n time"], keep: float, vocab: int, *, noise: str = "random", rng: torch.Generator
) -> Int[Tensor, "n time"]:
    """Each word stays with probability `keep`, else becomes a random word ("random") or [MASK] ("mask").

    END and padding stay where they are: the length is given.
    """
    choice("noise", noise, ("random", "mask"))
    other = torch.randint(RESERVED, vocab, target.shape, generator=rng, device=rng.device)
    other = other if noise == "random" else torch.full_like(other, MASK)
    kept = torch.rand(target.shape, generator=rng, device=rng.device) < keep
    return torch.where(kept | (target == PAD) | (target == END), target, other)


@dataclass(frozen=True)
class RefinementLoss(Objective):
    """Multi-stage loss of iterative refinement: (1/S) Σ_s CE(f(X^(s−1)), target) + CE(length) (Li 2024, §4.2.2.2).

    X^(0) is the corrupted target; X^(s) the likeliest tokens of stage s, through which no gradient flows, with repeats
    of the left neighbour put back to what was fed in.

    vocab     tokens; keep: u, the share of words that are left uncorrupted
    stages    S
    noise     corrupted words become "random" words or "mask"
    counted   the loss counts "all" words, or those that were corrupted ("noise")
    remask    put repeats back between stages; length: weight of the length loss
    """

    vocab: int
    keep: float = 0.15
    stages: int = 2
    noise: str = "random"
    counted: str = "all"
    remask: bool = True
    length: float = 1.0

    def __post_init__(self) -> None:
        integer("vocab", self.vocab, low=RESERVED + 1)
        integer("stages", self.stages, low=1)
        number("keep", self.keep, low=0.0, high=1.0)
        choice("noise", self.noise, ("random", "mask"))
        choice("counted", self.counted, ("all", "noise"))

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        spoilt = corrupt(batch.targets, self.keep, self.vocab, noise=self.noise, rng=rng)
        mask = batch.mask if self.counted == "all" else batch.mask & (spoilt != batch.targets)
        return replace(batch, inputs=torch.cat([batch.inputs, spoilt], -1), mask=mask)

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        return member_loss(logits[..., 1:, :], batch) + self.length * self._length_loss(logits, batch)

    def _length_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        classes = (batch.truth["length"] - 1).unsqueeze(-1)
        return member_loss(logits[..., :1, :], replace(batch, targets=classes, mask=classes >= 0))

    def whole(self, forward: Forward, batch: Batch) -> Tensor:
        count = batch.targets.shape[-1]
        source, fed = batch.inputs[..., :-count], batch.inputs[..., -count:]
        logits = forward(batch.inputs)
        if logits.ndim != source.ndim + 1:
            raise BadInput("members answer differently, so each needs examples of its own: train with data='separate'")
        lengths, tokens = self._length_loss(logits, batch), member_loss(logits[..., 1:, :], batch)
        for _ in range(self.stages - 1):
            fed = self._next(fed, logits, batch.targets)
            logits = forward(torch.cat([source, fed], -1))
            tokens = tokens + member_loss(logits[..., 1:, :], batch)
        return tokens / self.stages + self.length * lengths

    def _next(self, fed: Tensor, logits: Tensor, targets: Tensor) -> Tensor:
        """The likeliest tokens of a stage as the input of the next."""
        found = logits.detach()[..., 1:, :].argmax(-1)
        if self.remask:
            found = torch.where(stutters(found), fed, found)
        return torch.where((targets == PAD) | (targets == END), targets, found)


@dataclass(frozen=True)
class TeacherForcing(Objective):
    """Each token from the true ones before it: the decoder reads START and the target without its last token."""

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        start = torch.full_like(batch.targets[..., :1], START)
        return replace(batch, inputs=torch.cat([batch.inputs, start, batch.targets[..., :-1]], -1))

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        return member_loss(logits[..., 1:, :], batch)
