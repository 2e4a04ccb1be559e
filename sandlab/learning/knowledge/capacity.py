"""How much fits: the largest number of items that training stores, by bisection over a population."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import integer, number, require
from sandlab.models.base import seeded
from sandlab.models.knowledge.memories import random_directions

__all__ = ["MemoryTraining", "bisect_sizes", "memory_accuracies", "memory_capacity"]

Trial = Callable[[Sequence[int]], Sequence[bool]]


def bisect_sizes(
    trial: Trial, low: int, high: int, members: int, *, resolution: float = 0.03, tries: int = 1
) -> list[int]:
    """For each member the largest size between `low` and `high` that passes, as far as bisection can tell.

    `trial(sizes)` tries `tries` sizes per member (those of the first member first), all at once, and says which pass;
    1, 3, 7, … of them are one, two, three steps of bisection, and find what single tries find. Each step asks the
    middle (on the log scale): where it fails, larger sizes count as failed. The search ends when the open range is
    `resolution` of the size found, or one. A member that fails everywhere gets low − 1.
    """
    integer("low", low, low=1)
    integer("high", high, low=low)
    integer("tries", tries, low=1)
    levels = (tries + 1).bit_length() - 1
    require(tries == 2**levels - 1, "tries", tries, "1, 3, 7, …: all that so many steps of bisection may ask for")
    passed, failed, rows = np.full(members, low - 1), np.full(members, high + 1), np.arange(members)

    def searching() -> np.ndarray:
        return failed - passed > np.maximum(1, resolution * passed)

    while searching().any():
        edges = _middles(passed, failed, levels)
        asked = np.clip(edges[:, 1:-1], low, high)
        good = np.asarray(trial(asked.ravel().tolist()), dtype=bool).reshape(asked.shape)
        first, last = np.zeros(members, dtype=int), np.full(members, tries + 1)
        for _ in range(levels):
            middle, going = (first + last) // 2, searching()
            right = good[rows, middle - 1]
            first, last = np.where(right, middle, first), np.where(right, last, middle)
            passed = np.where(going & right, edges[rows, middle], passed)
            failed = np.where(going & ~right, edges[rows, middle], failed)
    return [int(size) for size in passed]


def _middles(passed: np.ndarray, failed: np.ndarray, levels: int) -> Int[np.ndarray, "members edges"]:
    """The open range, cut in the middle on the log scale, and each part again: capacities are compared by ratio."""
    edges = np.stack([passed, failed], 1)
    for _ in range(levels):
        left, right = edges[:, :-1], edges[:, 1:]
        middle = np.sqrt(np.maximum(left, 1) * right).round().astype(int)
        middle = np.clip(middle, left + 1, np.maximum(right - 1, left + 1))
        edges = np.insert(edges, np.arange(1, edges.shape[1]), middle, axis=1)
    return edges


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
    training: MemoryTraining,
    seeds: Sequence[int],
    *,
    low: int = 2,
    high: int | None = None,
    tries: int = 1,
    device: str = "cpu",
) -> list[int]:
    """For each seed the largest N for which a trained memory holds a random bijection of N items.

    All seeds are trained at once, `tries` sizes of each; every trial starts from fresh vectors and weights. The search
    ends at `high`, by default the largest N with N log N ≤ 2 nats for each weight.
    """
    weights = training.width**2 if training.hidden is None else 2 * training.width * training.hidden
    sizes = np.arange(2, weights + 3)
    largest = int(sizes[sizes * np.log(sizes) <= max(2 * weights, 2)][-1]) if high is None else high
    repeated = [seed for seed in seeds for _ in range(tries)]

    def trial(sizes: Sequence[int]) -> list[bool]:
        return (memory_accuracies(training, sizes, repeated, device=device) >= training.level).tolist()

    return bisect_sizes(trial, low, max(low, largest), len(seeds), tries=tries)


def memory_accuracies(
    training: MemoryTraining, sizes: Sequence[int], seeds: Sequence[int], *, device: str = "cpu"
) -> Float[Tensor, "member"]:
    """Share of items that each member holds after training; member i has sizes[i] items and seed seeds[i].

    f* is the identity: with independent random vectors on both sides every bijection is the same problem.
    """
    require(len(sizes) == len(seeds), "sizes", len(sizes), f"one for each of the {len(seeds)} seeds")
    keys, answers, weights = _draw(training, sizes, seeds, device)
    count = torch.tensor(list(sizes), device=device).view(-1, 1, 1)
    used = torch.arange(max(sizes), device=device).view(1, -1, 1) < count
    unused = torch.where(used, 0.0, -torch.inf).mT  # added to the logits
    rate, done = torch.tensor(training.lr, device=device), torch.zeros((), device=device)
    optimizer = torch.optim.Adam(weights, lr=rate, capturable=keys.is_cuda, foreach=keys.is_cuda)

    def update() -> None:
        rate.copy_(training.lr * (1 + torch.cos(torch.pi * done / training.iterations)) / 2)
        done.add_(1)
        outputs = _outputs(keys, weights)
        pull = _loss_gradient(outputs.detach(), answers, unused) * used / count
        for weight, gradient in zip(weights, torch.autograd.grad(outputs, weights, pull)):
            weight.grad = gradient
        optimizer.step()

    _repeat(update, training.iterations, on_gpu=keys.is_cuda)
    with torch.no_grad():
        chosen = torch.baddbmm(unused, _outputs(keys, weights), answers.mT).argmax(-1, keepdim=True)
    right = (chosen == torch.arange(max(sizes), device=device).view(1, -1, 1)) & used
    return right.sum((1, 2)) / count.flatten()


def _repeat(update: Callable[[], None], count: int, *, on_gpu: bool, first: int = 3) -> None:
    """`count` updates; on a GPU the first ones as they are, the others as replays of one recorded update."""
    if not on_gpu or count <= first:
        for _ in range(count):
            update()
        return
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(first):
            update()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update()
    for _ in range(count - first):
        graph.replay()


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


def _outputs(keys: Tensor, weights: Sequence[Tensor]) -> Float[Tensor, "member item width"]:
    """F(e_x) of every item."""
    x = keys @ weights[0].mT
    for weight in weights[1:]:
        x = F.relu(x) @ weight.mT
    return x


def _loss_gradient(
    outputs: Float[Tensor, "member item width"], answers: Tensor, unused: Float[Tensor, "member 1 item"]
) -> Float[Tensor, "member item width"]:
    """d/dF of each item's cross-entropy −log softmax(Fᵀu)_x: the mean answer it expects minus its own."""
    return torch.baddbmm(unused, outputs, answers.mT).softmax(-1) @ answers - answers
