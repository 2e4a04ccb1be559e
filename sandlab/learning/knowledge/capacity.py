"""How much fits: the largest number of items that training stores, by bisection over a population."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import choice, integer, number, require
from sandlab.models.base import seeded
from sandlab.models.knowledge.memories import random_directions

__all__ = ["MemoryTraining", "bisect_sizes", "memory_accuracies", "memory_capacity"]

Trial = Callable[[Sequence[int]], Sequence[bool]]
FIRST_STEP_DOWN = 1.1
LOOK = 64  # updates between two looks at what is held
BLOCK = 128  # items whose logits a CPU computes at once


def bisect_sizes(
    trial: Trial, low: int, high: int, members: int, *, resolution: float = 0.03, start: int | None = None
) -> list[int]:
    """For each member the largest size between `low` and `high` that passes, as far as bisection can tell.

    `trial(sizes)` tries one size per member, all at once, and says which pass. Each step asks the middle (on the log
    scale) of what is open, until that is `resolution` of the size found, or one. With a `start` the search begins
    there: from a size that passes it goes up by `resolution` until one fails (where a trial is over as soon as it
    passes, failing is what costs), from one that fails down by a tenth, a fifth, two fifths … until one passes. A
    member that fails everywhere gets low − 1.
    """
    integer("low", low, low=1)
    integer("high", high, low=low)
    passed, failed = np.full(members, low - 1), np.full(members, high + 1)
    up, down = (high + 1.0, high + 1.0) if start is None else (1 + resolution, FIRST_STEP_DOWN)
    asked = _middle(passed, failed) if start is None else np.full(members, min(max(start, low), high))
    while (going := failed - passed > np.maximum(1, resolution * passed)).any():
        good = np.asarray(trial(asked.tolist()), dtype=bool)
        passed = np.where(going & good, asked, passed)
        failed = np.where(going & ~good, asked, failed)
        middle = _middle(passed, failed)
        above, below = np.minimum(passed * up, middle), np.maximum(failed / down, middle)
        asked = np.where(failed > high, above, np.where(passed < low, below, middle)).astype(int)
        asked = np.clip(asked, passed + 1, np.maximum(failed - 1, passed + 1)).clip(low, high)
        down = min(down**2, high + 1.0)
    return [int(size) for size in passed]


def _middle(passed: np.ndarray, failed: np.ndarray) -> Int[np.ndarray, "member"]:
    """Of the open range, on the log scale, since capacities are compared by ratio."""
    middle = np.sqrt(np.maximum(passed, 1) * failed).round().astype(int)
    return np.clip(middle, passed + 1, np.maximum(failed - 1, passed + 1))


@dataclass(frozen=True)
class MemoryTraining:
    """How memories are trained for a capacity: Adam on all items at once, by cross-entropy.

    A table is held as soon as enough of its items are right, looked at every 64 updates: the best on the way counts.

    width, hidden   d, and m of a perceptron (None: a linear map)
    iterations, lr  updates at most, and the largest learning rate (cosine to zero)
    level           share of items that must be right
    precision       of the products with the answers' vectors in an update; what is held is decided in float32
    """

    width: int
    hidden: int | None = None
    iterations: int = 4096
    lr: float = 0.02
    level: float = 0.99
    precision: str = "float32"

    def __post_init__(self) -> None:
        integer("width", self.width, low=1)
        integer("iterations", self.iterations, low=0)
        number("lr", self.lr, low=0.0)
        number("level", self.level, low=0.0, high=1.0)
        choice("precision", self.precision, ("float32", "bfloat16"))


def memory_capacity(
    training: MemoryTraining, seeds: Sequence[int], *, low: int = 2, high: int | None = None, device: str = "cpu"
) -> list[int]:
    """For each seed the largest N for which a trained memory holds a random bijection of N items.

    Every trial starts from fresh vectors and weights. The search starts at N log N = 0.75 nats for each weight, which
    linear memories hold easily, and goes up to `high`, by default 2 nats for each weight.
    """
    weights = training.width**2 if training.hidden is None else 2 * training.width * training.hidden
    sizes = np.arange(2, weights + 3)
    nats = sizes * np.log(sizes)
    start, largest = (int(sizes[nats <= max(share * weights, 2)][-1]) for share in (0.75, 2))
    high = largest if high is None else high

    def trial(sizes: Sequence[int]) -> list[bool]:
        return (memory_accuracies(training, sizes, seeds, device=device) >= training.level).tolist()

    return bisect_sizes(trial, low, max(low, high), len(seeds), start=start)


def memory_accuracies(
    training: MemoryTraining, sizes: Sequence[int], seeds: Sequence[int], *, device: str = "cpu"
) -> Float[Tensor, "member"]:
    """Share of items that each member holds at its best; member i has sizes[i] items and seed seeds[i].

    f* is the identity: with independent random vectors on both sides every bijection is the same problem. A GPU trains
    all members at once until each holds its table or the updates are over, a CPU one after another.
    """
    require(len(sizes) == len(seeds), "sizes", len(sizes), f"one for each of the {len(seeds)} seeds")
    if device != "cpu":
        return _best_accuracies(training, sizes, seeds, device)
    return torch.cat([_best_accuracies(training, [size], [seed], device) for size, seed in zip(sizes, seeds)])


def _best_accuracies(
    training: MemoryTraining, sizes: Sequence[int], seeds: Sequence[int], device: str
) -> Float[Tensor, "member"]:
    keys, answers, weights = _draw(training, sizes, seeds, device)
    count = torch.tensor(list(sizes), device=device).view(-1, 1, 1)
    used = torch.arange(max(sizes), device=device).view(1, -1, 1) < count
    unused = torch.where(used, 0.0, -torch.inf).mT if len(set(sizes)) > 1 else None  # added to the logits
    rate, done = torch.tensor(training.lr, device=device), torch.zeros((), device=device)
    optimizer = torch.optim.Adam(weights, lr=rate, capturable=keys.is_cuda, fused=True)
    low = getattr(torch, training.precision)

    def update() -> None:
        rate.copy_(training.lr * (1 + torch.cos(torch.pi * done / training.iterations)) / 2)
        done.add_(1)
        outputs = _outputs(keys, weights)
        pull = _loss_gradient(outputs.detach(), answers, unused, low) * used / count
        for weight, gradient in zip(weights, torch.autograd.grad(outputs, weights, pull)):
            weight.grad = gradient.contiguous()  # the fused update reads it in the order of the weights
        optimizer.step()

    @torch.no_grad()
    def right() -> Float[Tensor, "member"]:
        parts = _blocks(_outputs(keys, weights))
        chosen = torch.cat([_logits(part, answers, unused).argmax(-1, keepdim=True) for part in parts], 1)
        hits = (chosen == torch.arange(max(sizes), device=device).view(1, -1, 1)) & used
        return hits.sum((1, 2)) / count.flatten()

    best = right()
    for _ in _rounds(update, training.iterations, on_gpu=keys.is_cuda):
        best = torch.maximum(best, right())
        if bool((best >= training.level).all()):
            break
    return best


def _rounds(update: Callable[[], None], count: int, *, on_gpu: bool, first: int = 3) -> Iterator[None]:
    """`count` updates, with a pause after every 64; on a GPU all but the first are replays of one recorded update."""
    step = update
    for begin in range(0, count, LOOK):
        here = min(LOOK, count - begin)
        if on_gpu and begin == 0 and here > first:
            step = _recorded(update, first)
            here -= first
        for _ in range(here):
            step()
        yield


def _recorded(update: Callable[[], None], first: int) -> Callable[[], None]:
    """Do the first updates as they are, then record one: a replay of it is an update."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(first):
            update()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update()
    return graph.replay


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
    outputs: Float[Tensor, "member item width"],
    answers: Tensor,
    unused: Float[Tensor, "member 1 item"] | None,
    low: torch.dtype,
) -> Float[Tensor, "member item width"]:
    """d/dF of each item's cross-entropy −log softmax(Fᵀu)_x: the mean answer it expects minus its own."""
    vectors = answers.to(low)
    parts = [_logits(part, vectors, unused).softmax(-1) @ vectors for part in _blocks(outputs.to(low))]
    expected = torch.cat(parts, 1)
    return expected.to(answers.dtype) - answers


def _blocks(outputs: Float[Tensor, "member item width"]) -> Sequence[Tensor]:
    """On a CPU so few items at a time that their logits stay in its cache; on a GPU all."""
    return outputs.split(BLOCK if outputs.device.type == "cpu" else outputs.shape[1], 1)


def _logits(
    outputs: Float[Tensor, "member row width"], answers: Tensor, unused: Float[Tensor, "member 1 item"] | None
) -> Float[Tensor, "member row item"]:
    products = outputs @ answers.mT
    return products if unused is None else products + unused.to(products.dtype)
