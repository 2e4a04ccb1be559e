"""How often a chain of thought is right: at every step, on average, or all the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sandlab.errors import integer
from sandlab.learning.experiment import Snapshot
from sandlab.learning.population import Population
from sandlab.lenses.predictions import evaluating
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.reasoning.clauses import ClauseWorld
from sandlab.worlds.reasoning.lego import Lego

__all__ = [
    "AnswerAccuracy",
    "LengthAccuracy",
    "SharpAccuracy",
    "answer_accuracy",
    "last_answer_accuracy",
    "right_values",
]

AT_ONCE = 1 << 27
"""Logits computed at once."""


@dataclass(frozen=True)
class AnswerAccuracy:
    """Accuracies of answers; one value per member for a population.

    all_steps   every value right: the success of greedy rollout (with the variable right or forced)
    per_step    share of right values, teacher forced
    sampled     Acc_L: mean over steps of the probability that a sampled clause is the true one, all predicted slots
    variables   share of right answered variables
    """

    all_steps: Tensor
    per_step: Tensor
    sampled: Tensor
    variables: Tensor


@register("lenses")
def answer_accuracy(model: nn.Module, world: Lego, *, examples: int = 300, rng: torch.Generator) -> AnswerAccuracy:
    """All-steps, per-step and sampled accuracy (Acc_L) of a model on fresh chains, in one pass per batch.

    A chain is solved by greedy decoding exactly when all its teacher-forced predictions are right, so that one pass
    stands for a rollout of L steps.

    Source: Huang et al. 2025, Definition 3.6 (Acc_L) and section 7 (all steps).
    """
    integer("examples", examples, low=1)
    members = len(model) if isinstance(model, Population) else 1
    size = max(1, AT_ONCE // (2 * world.predicates * 5 * world.vocab * members))
    parts = []
    with evaluating(model), torch.no_grad():
        for start in range(0, examples, size):
            batch = world.sample(min(size, examples - start), rng=rng)
            parts.append(_measured(model, world, batch))
    joined = [torch.cat(each, -1).mean(-1) for each in zip(*parts)]
    return AnswerAccuracy(*joined)


def _measured(model: nn.Module, world: Lego, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Per chain: all values right, share of right values, probability of sampling right clauses, right variables."""
    steps, per = world.predicted_steps, 5 if world.predict_blanks else 2
    logits = model(batch.inputs)[..., -batch.mask.shape[-1] :, :].unflatten(-2, (steps, per))
    targets = batch.targets.view(len(batch), steps, per)
    right = logits.argmax(-1) == targets
    wanted = targets.unsqueeze(-1).expand(*logits.shape[:-1], 1)
    likely = logits.log_softmax(-1).gather(-1, wanted).squeeze(-1).sum(-1).exp().mean(-1)
    values = right[..., -1]
    return values.all(-1).double(), values.double().mean(-1), likely.double(), right[..., -2].double().mean(-1)


def right_values(logits: Float[Tensor, "*lead target vocab"], batch: Batch) -> Bool[Tensor, "*lead step"]:
    """Which values are the most likely class, step by step (two slots per clause)."""
    return (logits[..., -batch.targets.shape[-1] :, :].argmax(-1) == batch.targets)[..., 1::2]


def last_answer_accuracy(model: nn.Module, world: ClauseWorld, *, examples: int, rng: torch.Generator) -> Tensor:
    """Share of examples whose last counted target is predicted: the answer, with or without a chain of thought.

    With a chain of thought all counted targets must be right, as in a greedy rollout.
    """
    hits = []
    with evaluating(model), torch.no_grad():
        for start in range(0, examples, 256):
            batch = world.sample(min(256, examples - start), rng=rng)
            guess = model(batch.inputs)[..., -batch.mask.shape[-1] :, :].argmax(-1)
            hits.append(((guess == batch.targets) | ~batch.mask).all(-1).double())
    return torch.cat(hits, -1).mean(-1)


@dataclass(frozen=True)
class LengthAccuracy:
    """A probe: "all steps", "per step" and "sampled" accuracy at several lengths (member, length).

    permuted, unrelated   as in `Lego`, for the tested chains
    """

    lengths: tuple[int, ...] = (5, 10, 20, 40)
    sequences: int = 300
    permuted: bool = False
    unrelated: int = 0

    def __call__(self, snapshot: Snapshot) -> Mapping[str, object]:
        world = snapshot.world
        assert isinstance(world, Lego)
        found = []
        for length in self.lengths:
            tested = world.fresh(length=length, num_answers=None, permuted=self.permuted, unrelated=self.unrelated)
            draws = snapshot.rng(7, "lengths", length)
            found.append(answer_accuracy(snapshot.model, tested, examples=self.sequences, rng=draws))
        names = {"all steps": "all_steps", "per step": "per_step", "sampled": "sampled"}
        return {name: torch.stack([getattr(each, field) for each in found], -1) for name, field in names.items()}


@dataclass(frozen=True)
class SharpAccuracy:
    """A probe: accuracy of the last answer on worlds of the same kind, "solved" (member, world)."""

    worlds: tuple[ClauseWorld, ...]
    examples: int = 512

    def __call__(self, snapshot: Snapshot) -> Mapping[str, Any]:
        found = [
            last_answer_accuracy(snapshot.model, world, examples=self.examples, rng=snapshot.rng(8, "solved", index))
            for index, world in enumerate(self.worlds)
        ]
        return {"solved": torch.stack(found, -1)}
