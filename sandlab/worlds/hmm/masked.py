"""Masked prediction of HMM strings as data: regression on products of tokens, and strings with hidden tokens."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from sandlab.errors import integer, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.hmm.models import HMM, GaussianHMM
from sandlab.worlds.hmm.tasks import MaskedTask

__all__ = ["MaskedPrediction", "MaskedStrings"]


@register("worlds")
@dataclass(frozen=True)
class MaskedPrediction(World):
    """Regression of ⊗_{τ ∈ targets} x_τ on the given tokens of an HMM (eq. 2.35); one answer per example.

    model   a discrete or Gaussian HMM; task: "2x3|1"

    Inputs: the given tokens, or their coordinates one after the other. Targets: the flattened product, real numbers
    (one-hot for a discrete HMM, so that cross-entropy can be used as well). The minimiser of the squared loss is
    `model.predictor(task)`.
    """

    model: HMM | GaussianHMM = field(default_factory=HMM)
    task: str = "2x3|1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", str(MaskedTask.parse(self.task)))

    @property
    def parsed(self) -> MaskedTask:
        return MaskedTask.parse(self.task)

    @property
    def vocab(self) -> int:
        return self.model.vocab

    @property
    def outputs(self) -> int:
        return len(self.model.means) ** len(self.parsed.targets)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        task, model = self.parsed, self.model
        if isinstance(model, HMM):
            tokens, states = HMM(model.transitions, task.length, model.emissions).sample_tokens(n, rng)
            seen = {time: one_hot(tokens[:, time - 1], model.vocab).float() for time in task.targets}
            inputs = tokens[:, [time - 1 for time in task.given]]
        else:
            batch = GaussianHMM(model.transitions, task.length, model.centres).sample(n, rng=rng)
            states, seen = batch.targets, {time: batch.inputs[:, time - 1] for time in task.targets}
            inputs = torch.cat([batch.inputs[:, time - 1] for time in task.given], 1)
        product = reduce(_outer, [seen[time] for time in task.targets])
        mask = torch.ones(n, 1, dtype=torch.bool, device=rng.device)
        return Batch(inputs, product.unsqueeze(1), mask, {"states": states})

    def optimal(self, batch: Batch) -> Float[Tensor, "example 1 outputs"]:
        """The conditional mean, which no predictor beats in squared loss."""
        given = batch.inputs.cpu().numpy()
        size = 1 if isinstance(self.model, HMM) else len(self.model.means)
        parts = [given[:, index * size : (index + 1) * size] for index in range(len(self.parsed.given))]
        observed = [part[:, 0] if isinstance(self.model, HMM) else part.astype(np.float64) for part in parts]
        found = self.model.predictor(self.task, *observed).reshape(len(given), 1, -1)
        return torch.from_numpy(found).to(batch.inputs.device)

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 outputs"]:
        """log P(x_targets | x_given) of a discrete HMM; a Gaussian one has a mean (`optimal`) but no classes."""
        if not isinstance(self.model, HMM):
            raise NotImplementedError("a Gaussian HMM has no classes to predict: see `optimal`")
        return self.optimal(batch).log()


def _outer(first: Tensor, second: Tensor) -> Tensor:
    """Products of all pairs of coordinates, example by example."""
    return (first.unsqueeze(2) * second.unsqueeze(1)).flatten(1)


@register("worlds")
@dataclass(frozen=True)
class MaskedStrings(World):
    """Strings of an HMM in which `masked` tokens are hidden and predicted: each for itself, or all together.

    model    a discrete HMM; its `length` is that of the strings
    masked   how many tokens are hidden, by the symbol d; which ones is drawn uniformly
    joint    the last `masked` tokens are hidden and predicted as one class among d^masked (one answer per example)
    """

    model: HMM = field(default_factory=HMM)
    masked: int = 1
    joint: bool = False

    def __post_init__(self) -> None:
        integer("masked", self.masked, low=1, high=self.model.length)
        require(self.masked < self.model.length, "masked", self.masked, "fewer than all tokens")

    @property
    def vocab(self) -> int:
        """The tokens of the HMM and the mask."""
        return self.model.vocab + 1

    @property
    def outputs(self) -> int:
        return self.model.vocab**self.masked if self.joint else self.model.vocab

    @cached_property
    def patterns(self) -> tuple[tuple[int, ...], ...]:
        """The sets of positions that may be hidden together."""
        places, count = range(self.model.length), self.masked
        return (tuple(places[-count:]),) if self.joint else tuple(itertools.combinations(places, count))

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        tokens, states = self.model.sample_tokens(n, rng)
        hidden = torch.zeros(len(self.patterns), self.model.length, dtype=torch.bool, device=rng.device)
        for row, places in enumerate(self.patterns):
            hidden[row, list(places)] = True
        chosen = torch.randint(len(self.patterns), (n,), generator=rng, device=rng.device)
        mask, truth = hidden[chosen], {"states": states, "pattern": chosen}
        inputs = torch.where(mask, self.model.vocab, tokens)
        if not self.joint:
            return Batch(inputs, tokens, mask, truth)
        label = torch.zeros(n, 1, dtype=torch.long, device=rng.device)
        for place in self.patterns[0]:
            label = label * self.model.vocab + tokens[:, [place]]
        return Batch(inputs, label, torch.ones_like(label, dtype=torch.bool), truth)

    def oracle(self, batch: Batch) -> Float[Tensor, "example time token"]:
        """Exact log-probabilities of the hidden tokens given the visible ones; a visible token is certain."""
        inputs, found = batch.inputs.cpu().numpy(), []
        for row, chosen in zip(inputs, batch.truth["pattern"].tolist()):
            found.append(self._joint_answer(row) if self.joint else self._answer(row, self.patterns[chosen]))
        with np.errstate(divide="ignore"):
            return torch.from_numpy(np.log(np.stack(found))).to(batch.inputs.device)

    def _answer(self, row: np.ndarray, hidden: tuple[int, ...]) -> Float[np.ndarray, "time token"]:
        visible = [place for place in range(len(row)) if place not in hidden]
        observed = [row[[place]] for place in visible]
        answer = np.eye(self.vocab)[row][:, : self.model.vocab]
        for place in hidden:
            task = MaskedTask((place + 1,), tuple(each + 1 for each in visible))
            answer[place] = self.model.predictor(task, *observed)[0]
        return answer

    def _joint_answer(self, row: np.ndarray) -> Float[np.ndarray, "1 class"]:
        seen = len(row) - self.masked
        task = MaskedTask(tuple(range(seen + 1, len(row) + 1)), tuple(range(1, seen + 1)))
        return self.model.predictor(task, *[row[[place]] for place in range(seen)]).reshape(1, -1)
