"""Losses that depend on activations or on several forward passes: attention sharpening, invariant logits.

A penalty is added to an objective: `Penalised(CrossEntropy(), (Sharpening(0.1),))`. It sees the model through `forward`
(see objectives.py), so it works for one model and for a population alike.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from sandlab.errors import choice, integer, number
from sandlab.learning.objectives import CrossEntropy, Forward, Objective, masked_mean
from sandlab.models.hooks import ActivationCache, record
from sandlab.worlds.base import Batch

__all__ = ["InvariantLogits", "Penalised", "Penalty", "SequenceMean", "Sharpening", "row_sharpness"]


class Penalty(ABC):
    """An extra term of the loss. Subclasses are frozen dataclasses."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Names of the activations that are recorded in the forward pass, as in `record`."""
        return ()

    @property
    def steady(self) -> bool:
        """Whether the term is the same function at every step and never waits for a value from the GPU."""
        return False

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """The batch with what the penalty needs added to its truth."""
        return batch

    @abstractmethod
    def __call__(self, cache: ActivationCache, logits: Tensor, batch: Batch, forward: Forward) -> Tensor:
        """The term, one number for one model or one per member."""


@dataclass(frozen=True)
class Penalised(Objective):
    """An objective plus penalties: one forward pass whose recorded activations every penalty sees."""

    objective: Objective = field(default_factory=CrossEntropy)
    penalties: tuple[Penalty, ...] = ()

    @property
    def steady(self) -> bool:
        return all(penalty.steady for penalty in self.penalties)

    @property
    def reads_activations(self) -> bool:
        return any(penalty.patterns for penalty in self.penalties)

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        """The objective alone: what evaluation reports."""
        return self.objective(logits, batch)

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        batch = self.objective.prepare(batch, rng)
        for penalty in self.penalties:
            batch = penalty.prepare(batch, rng)
        return batch

    def whole(self, forward: Forward, batch: Batch) -> Tensor:
        patterns = tuple(pattern for penalty in self.penalties for pattern in penalty.patterns)
        with record(forward.module, *patterns) as cache:
            logits = forward(batch.inputs)
        loss = self.objective(logits, batch)
        for penalty in self.penalties:
            loss = loss + penalty(cache, logits, batch, forward)
        return loss


def row_sharpness(rows: Tensor, kind: str) -> Tensor:
    """How spread each attention row is; the smaller, the sharper.

    "entropy" −Σ α log α in [0, ln n];  "negative-l2" −‖α‖₂ in [−1, −1/√n];  "negative-max" −max α in [−1, −1/n]
    """
    choice("kind", kind, ("entropy", "negative-l2", "negative-max"))
    if kind == "entropy":
        return -(rows * (rows + 1e-9).log()).sum(-1)
    if kind == "negative-l2":
        return -rows.square().sum(-1).clamp(min=1e-18).sqrt()
    return -rows.amax(-1)


@dataclass(frozen=True)
class Sharpening(Penalty):
    """λ(step) · mean of `row_sharpness` over layers, heads, queries and examples (Liu et al. 2023, §4 on sharpening).

    layers     which layers' attention is sharpened ("*": all; "0": the first only)
    schedule   "constant"; "linear": λ · clip((s − start)/(steps − start), 0, 1);
               "oscillating": λ · ½(1 − cos 2π(s − start)/period) from `start` on
    """

    strength: float = 0.01
    kind: str = "entropy"
    layers: str = "*"
    schedule: str = "constant"
    start: int = 0
    steps: int = 10_000
    period: int = 1000

    def __post_init__(self) -> None:
        number("strength", self.strength, low=0.0)
        choice("kind", self.kind, ("entropy", "negative-l2", "negative-max"))
        choice("schedule", self.schedule, ("constant", "linear", "oscillating"))
        integer("start", self.start, low=0)
        integer("steps", self.steps, low=1)
        integer("period", self.period, low=1)

    @property
    def steady(self) -> bool:
        return self.schedule == "constant"

    @property
    def patterns(self) -> tuple[str, ...]:
        return (f"layers.{self.layers}.attention.pattern",)

    def strength_at(self, step: int) -> float:
        """λ(step)."""
        if self.schedule == "constant":
            return self.strength
        since = step - self.start
        if since < 0:
            return 0.0
        if self.schedule == "linear":
            return self.strength * min(since / max(self.steps - self.start, 1), 1.0)
        return self.strength * 0.5 * (1 - math.cos(2 * math.pi * since / self.period))

    def __call__(self, cache: ActivationCache, logits: Tensor, batch: Batch, forward: Forward) -> Tensor:
        names = [name for name in cache if name.startswith("layers.") and "#" not in name]
        lead = logits.ndim - 3  # a member axis is kept
        spread = [row_sharpness(cache[name], self.kind).flatten(lead).mean(-1) for name in names]
        return self.strength_at(forward.step) * torch.stack(spread).mean(0)


@dataclass(frozen=True)
class InvariantLogits(Penalty):
    """strength · mean (T(s | p ⊕ s) − T(s))²: the logits on s should not change when a prefix p is put before it.

    `prefix(batch, rng)` draws the prefixed inputs (one prefix length for the whole batch, after a start token if there
    is one) and says how many of the last positions are those of the original inputs. The mean runs over these positions
    where they are counted, and over the vocabulary (Wen et al. 2023, contrastive regulariser for balance).
    """

    prefix: Callable[[Batch, torch.Generator], tuple[Tensor, int]]
    strength: float = 0.3

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        inputs, kept = self.prefix(batch, rng)
        truth = {**batch.truth, "prefixed_inputs": inputs, "prefixed_kept": torch.full((len(inputs),), kept)}
        return replace(batch, truth=truth)

    def __call__(self, cache: ActivationCache, logits: Tensor, batch: Batch, forward: Forward) -> Tensor:
        prefixed = forward(batch.truth["prefixed_inputs"])
        kept = int(batch.truth["prefixed_kept"].flatten()[0])
        gap = (prefixed[..., -kept:, :] - logits[..., -kept:, :]).square().mean(-1)
        counted = replace(batch, mask=batch.mask[..., -kept:])
        return self.strength * masked_mean(gap, counted, members=logits.ndim > 3)


@dataclass(frozen=True)
class SequenceMean(Objective):
    """Cross-entropy averaged over the counted targets of each sequence first, then over sequences.

    Where sequences have very different numbers of targets (a mixture of dense and sparse ones), the plain mean is
    dominated by those with many; this one gives every sequence the same weight.
    """

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        logits = logits[..., -batch.mask.shape[-1] :, :]
        targets = batch.targets.expand(logits.shape[:-1]).unsqueeze(-1)
        losses = -logits.log_softmax(-1).gather(-1, targets).squeeze(-1)
        counted = batch.mask.to(losses.dtype)
        per_sequence = (losses * counted).sum(-1) / counted.sum(-1).clamp(min=1)
        weight = (counted.sum(-1) > 0).to(losses.dtype)
        return (per_sequence * weight).sum(-1) / weight.sum(-1).clamp(min=1)
