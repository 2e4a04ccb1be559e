"""Mixtures of worlds: the first token of each example says which world it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import BadInput, number, require
from sandlab.random import rng as seeded_rng
from sandlab.registry import name_of, register
from sandlab.worlds.base import Batch, Predictor, World
from sandlab.worlds.markov._walk import draw
from sandlab.worlds.markov.chain import InContextMarkov, MarkovChain

__all__ = ["Mixture"]


@register("worlds")
@dataclass(frozen=True)
class Mixture(World):
    """A mixture of token worlds with a task token in front.

    parts    the worlds; they share tokens 0 … V − 1, where V is the largest alphabet; the task token of part i is V + i
    weights  probabilities of the parts, up to normalisation (default: uniform)

    An example of part i is [V + i, its inputs, padding]. Targets stay aligned with their inputs; neither the task token
    nor padding (token V + number of parts, used when lengths differ) counts. truth["task"] is the part; its latent
    tensors are kept as "i.name", zero in the rows of other parts. Since the task token identifies the part, the oracle
    is that of the part.
    """

    parts: tuple[World, ...] = (MarkovChain(), InContextMarkov(states=2))
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        require(len(self.parts) >= 1, "parts", self.parts, "at least one world")
        for part in self.parts:
            require(isinstance(part, World), "part", part, "a world")
        if self.weights is not None:
            weights = tuple(number("weight", weight, low=0.0) for weight in self.weights)
            object.__setattr__(self, "weights", weights)
            fits = len(weights) == len(self.parts) and sum(weights) > 0
            require(fits, "weights", weights, f"{len(self.parts)} numbers, not all zero")
        for part, example in zip(self.parts, self._examples):
            sequence = example.inputs.ndim == 2 and not example.inputs.is_floating_point() and example.mask.ndim == 2
            require(sequence, "part", type(part).__name__, "a world of token sequences")

    @property
    def alphabet(self) -> int:
        """V: number of tokens that the parts share."""
        return max(part.vocab for part in self.parts)

    @property
    def vocab(self) -> int:
        lengths = {example.inputs.shape[1] for example in self._examples}
        return self.alphabet + len(self.parts) + (len(lengths) > 1)

    @property
    def outputs(self) -> int:
        return max(part.outputs for part in self.parts)

    @property
    def length(self) -> int:
        """Input tokens: the task token and the longest part."""
        return 1 + max(example.inputs.shape[1] for example in self._examples)

    @property
    def letters(self) -> list[str]:
        longest = max(self.parts, key=lambda part: part.vocab)
        tasks = [f"<{_title(part)}>" for part in self.parts]
        padding = ["·"] * (self.vocab - self.alphabet - len(self.parts))
        return [*longest.letters, *tasks, *padding]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        weights = torch.tensor(self.weights or [1.0] * len(self.parts), dtype=torch.float64, device=rng.device)
        task = draw((weights / weights.sum()).expand(n, -1), rng=rng)
        # A part without rows in this batch is sampled once too, so that shapes and truth names do not change.
        drawn = [part.sample(max(1, int((task == i).sum())), rng=rng) for i, part in enumerate(self.parts)]
        soft = any(batch.soft for batch in drawn)
        inputs = torch.full((n, self.length), self.alphabet + len(self.parts), dtype=torch.int64, device=rng.device)
        mask = torch.zeros_like(inputs, dtype=torch.bool)
        shape = (*inputs.shape, self.outputs) if soft else inputs.shape
        targets = torch.zeros(shape, dtype=torch.float64 if soft else torch.int64, device=rng.device)
        truth: dict[str, Tensor] = {"task": task}
        for i, batch in enumerate(drawn):
            rows = (task == i).nonzero().squeeze(-1)
            inputs[rows, 0] = self.alphabet + i
            end = 1 + batch.inputs.shape[1]
            inputs[rows, 1:end] = batch.inputs[: len(rows)]
            counted = slice(end - batch.mask.shape[1], end)
            mask[rows, counted] = batch.mask[: len(rows)]
            targets[rows, counted] = self._targets(batch, soft)[: len(rows)]
            for name, value in batch.truth.items():
                truth[f"{i}.{name}"] = _spread(value, rows, n)
        return Batch(inputs, targets, mask, truth)

    def part_batch(self, batch: Batch, part: int) -> tuple[Tensor, Batch]:
        """Indices of the rows that come from a part, and these rows as a batch of that part."""
        rows = (batch.inputs[:, 0] == self.alphabet + part).nonzero().squeeze(-1)
        example = self._examples[part]
        end = 1 + example.inputs.shape[1]
        counted = slice(end - example.mask.shape[1], end)
        targets = batch.targets[rows, counted]
        if batch.soft:
            targets = targets[..., : self.parts[part].outputs] if example.soft else targets.argmax(-1)
        prefix = f"{part}."
        truth = {name[len(prefix) :]: value[rows] for name, value in batch.truth.items() if name.startswith(prefix)}
        return rows, Batch(batch.inputs[rows, 1:end], targets, batch.mask[rows, counted], truth)

    def oracle(self, batch: Batch) -> Float[Tensor, "example time outputs"]:
        """Each part's oracle at its rows and positions; uniform where nothing is predicted."""
        return self._assemble(batch, [part.oracle for part in self.parts])

    def baselines(self) -> dict[str, Predictor]:
        """The baselines that all parts have in common, by name."""
        each = [part.baselines() for part in self.parts]
        common = [name for name in each[0] if all(name in named for named in each)]
        return {name: partial(self._assemble, predictors=[named[name] for named in each]) for name in common}

    def _assemble(self, batch: Batch, predictors: list[Predictor]) -> Tensor:
        probs = torch.full((*batch.inputs.shape, self.outputs), 1 / self.outputs, dtype=torch.float64)
        log_probs = probs.log().to(batch.inputs.device)
        for part, predict in enumerate(predictors):
            rows, examples = self.part_batch(batch, part)
            if len(rows) == 0:
                continue
            predicted = predict(examples)
            end = 1 + examples.inputs.shape[1]
            padded = F.pad(predicted, (0, self.outputs - predicted.shape[-1]), value=-torch.inf)
            log_probs[rows, end - predicted.shape[1] : end] = padded
        return log_probs

    def _targets(self, batch: Batch, soft: bool) -> Tensor:
        if not soft:
            return batch.targets
        probs = batch.targets if batch.soft else F.one_hot(batch.targets.clamp(min=0), self.outputs)
        return F.pad(probs.to(torch.float64), (0, self.outputs - probs.shape[-1]))

    @cached_property
    def _examples(self) -> tuple[Batch, ...]:
        """One example of each part, for its shapes."""
        try:
            return tuple(part.sample(1, rng=seeded_rng(0, "shape")) for part in self.parts)
        except NotImplementedError as missing:
            raise BadInput("every part of a mixture must be a world that can be sampled") from missing


def _spread(value: Tensor, rows: Tensor, n: int) -> Tensor:
    """The first rows of `value` at the given rows of n, zero elsewhere."""
    spread = value.new_zeros(n, *value.shape[1:])
    spread[rows] = value[: len(rows)]
    return spread


def _title(part: World) -> str:
    try:
        return name_of("worlds", part)
    except BadInput:
        return type(part).__name__
