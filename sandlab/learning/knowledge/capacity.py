"""How much fits: the largest number of items that training stores, by bisection over a population."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from sandlab.errors import integer, number, require
from sandlab.models.base import seeded
from sandlab.models.knowledge.memories import random_directions

__all__ = ["MemoryTraining", "bisect_sizes", "memory_accuracies", "memory_capacity"]

Trial = Callable[[Sequence[int]], Sequence[bool]]


def bisect_sizes(trial: Trial, low: int, high: int, members: int, *, resolution: float = 0.03) -> list[int]:
    """For each member the largest size between `low` and `high` that passes, as far as bisection can tell.

    `trial(sizes)` tries one size per member, all at once, and says which pass. A size that fails and sizes above it
    count as failed. The search begins in the middle (on the log scale) and ends when the open range is `resolution` of
    the size found, or one. A member that fails everywhere gets low − 1.
    """
    integer("low", low, low=1)
    integer("high", high, low=low)
    passed, failed = np.full(members, low - 1), np.full(members, high + 1)
    while (searching := failed - passed > np.maximum(1, resolution * passed)).any():
        # On the log scale: capacities of different sizes are compared by their ratio.
        middle = np.sqrt(np.maximum(passed, 1) * failed.astype(float)).round().astype(int)
        tried = np.where(searching, np.clip(middle, passed + 1, failed - 1), np.maximum(passed, low))
        good = np.asarray(trial(tried.tolist()), dtype=bool)
        passed, failed = np.where(searching & good, tried, passed), np.where(searching & ~good, tried, failed)
    return [int(size) for size in passed]


@dataclass(frozen=True)
class MemoryTraining:
    """How memories are trained for a capacity: Adam on all items at once, by cross-entropy.

    width, hidden   d, and m of a perceptron (None: a linear map)
    iterations, lr      updates, and the largest learning rate (cosine to zero)
    level           share of items that must be right
    """

    width: int
    hidden: int | None = None
    iterations: int = 4096
    lr: float = 0.02
    level: float = 0.99

    def __post_init__(self) -> None:
        integer("width", self.width, low=1)
        integer("iterations", self.iterations, low=0)
        number("lr", self.lr, low=0.0)
        number("level", self.level, low=0.0, high=1.0)


def memory_capacity(
    training: MemoryTraining, seeds: Sequence[int], *, low: int = 2, high: int | None = None, device: str = "cpu"
) -> list[int]:
    """For each seed the largest N for which a trained memory holds a random bijection of N items.

    All seeds are trained at once, each with a size of its own; every trial starts from fresh vectors and weights.
    """
    weights = training.width**2 if training.hidden is None else 2 * training.width * training.hidden
    largest = weights if high is None else high

    def trial(sizes: Sequence[int]) -> list[bool]:
        return (memory_accuracies(training, sizes, seeds, device=device) >= training.level).tolist()

    return bisect_sizes(trial, low, largest, len(seeds))


def memory_accuracies(
    training: MemoryTraining, sizes: Sequence[int], seeds: Sequence[int], *, device: str = "cpu"
) -> Float[Tensor, "member"]:
    """Share of items that each member holds after training; member i has sizes[i] items and seed seeds[i].

    f* is the identity: with independent random vectors on both sides every bijection is the same problem.
    """
    require(len(sizes) == len(seeds), "sizes", len(sizes), f"one for each of the {len(seeds)} seeds")
    keys, answers, weights = _draw(training, sizes, seeds, device)
    used = torch.arange(max(sizes), device=device) < torch.tensor(list(sizes), device=device).unsqueeze(-1)
    optimizer = torch.optim.Adam(weights, lr=training.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(training.iterations, 1))
    for _ in range(training.iterations):
        optimizer.zero_grad()
        _loss(_logits(keys, answers, weights, used), used).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        chosen = _logits(keys, answers, weights, used).argmax(-1)
    right = (chosen == torch.arange(max(sizes), device=device)) & used
    return right.sum(-1) / used.sum(-1)


def _draw(
    training: MemoryTraining, sizes: Sequence[int], seeds: Sequence[int], device: str
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Vectors (zeros beyond a member's size) and initial weights, a member axis first; each member has its own seed."""
    width, hidden = training.width, training.hidden
    shapes = [(width, width)] if hidden is None else [(hidden, width), (width, hidden)]
    parts = []
    for size, seed in zip(sizes, seeds):
        with seeded(seed):
            vectors = [F.pad(random_directions(size, width), (0, 0, 0, max(sizes) - size)) for _ in range(2)]
            parts.append([*vectors, *(torch.randn(shape) / shape[1] ** 0.5 for shape in shapes)])
    keys, answers, *weights = (torch.stack(part).to(device) for part in zip(*parts))
    return keys, answers, [weight.requires_grad_() for weight in weights]


def _logits(
    keys: Tensor, answers: Tensor, weights: Sequence[Tensor], used: Bool[Tensor, "member item"]
) -> Float[Tensor, "member item answer"]:
    x = keys @ weights[0].mT
    for weight in weights[1:]:
        x = F.relu(x) @ weight.mT
    return (x @ answers.mT).masked_fill(~used.unsqueeze(1), -torch.inf)


def _loss(logits: Tensor, used: Bool[Tensor, "member item"]) -> Tensor:
    """The sum over members of the mean loss over their items: members do not disturb each other."""
    own = -logits.log_softmax(-1).diagonal(dim1=-2, dim2=-1)
    return (torch.where(used, own, 0.0).sum(-1) / used.sum(-1)).sum()
