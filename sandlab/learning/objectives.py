"""What training minimises: cross-entropy against tokens, labels or distributions, for one model or a population.

Logits of a population have one axis more than those of one model: the member axis, first. The loss is then one number
per member. Any function `(logits, batch) -> loss` is an objective; a subclass of `Objective` can do more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sandlab.errors import BadInput, choice, integer, number, require
from sandlab.worlds.base import Batch

__all__ = [
    "OBJECTIVES",
    "CrossEntropy",
    "Forward",
    "LastLabel",
    "LossFunction",
    "MaskedToken",
    "MemberBatch",
    "NextToken",
    "Objective",
    "PositionLabel",
    "SoftTarget",
    "SquaredError",
    "as_objective",
    "masked_mean",
    "member_accuracy",
    "member_loss",
]

LossFunction: TypeAlias = Callable[[Tensor, Batch], Tensor]


@dataclass(frozen=True)
class Forward:
    """The model as a loss sees it during a training step.

    call      inputs → logits, with a member axis when the members are computed together
    module    the module whose activations `record` and `patch` find by name
    step      number of updates done so far
    """

    call: Callable[[Tensor], Tensor]
    module: nn.Module
    step: int = 0

    def __call__(self, inputs: Tensor) -> Tensor:
        return self.call(inputs)


class Objective(ABC):
    """A loss. Subclasses are frozen dataclasses that give `__call__` and override the rest where they need it."""

    @abstractmethod
    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        """The loss: one number for one model, one per member for a population."""

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """The batch as the model is to see it: shifted, masked, with other targets."""
        return batch

    def whole(self, forward: Forward, batch: Batch) -> Tensor:
        """The loss of the model behind `forward`, for losses that need more than its logits (see penalties.py)."""
        return self(forward(batch.inputs), batch)

    @property
    def steady(self) -> bool:
        """Whether `whole` is the same function at every step, so that a step can be recorded and replayed."""
        return True

    @property
    def reads_activations(self) -> bool:
        """Whether `whole` records activations: attention is then computed with its pattern, not by a fused kernel."""
        return False


@dataclass(frozen=True)
class _Function(Objective):
    """A plain function as an objective."""

    function: LossFunction

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        return self.function(logits, batch)


@dataclass(frozen=True)
class MemberBatch(Batch):
    """A batch with a member axis before the example axis: each member has its own examples."""

    def __len__(self) -> int:
        return self.inputs.shape[1]

    @classmethod
    def split(cls, batch: Batch, members: int) -> MemberBatch:
        """members · n examples as n for each member."""

        def part(value: Tensor) -> Tensor:
            return value.unflatten(0, (members, -1))

        truth = {name: part(value) for name, value in batch.truth.items()}
        return cls(part(batch.inputs), part(batch.targets), part(batch.mask), truth)

    def member(self, index: int) -> Batch:
        """The examples of one member."""
        truth = {name: value[index] for name, value in self.truth.items()}
        return Batch(self.inputs[index], self.targets[index], self.mask[index], truth)


def masked_mean(values: Tensor, batch: Batch, members: bool) -> Tensor:
    """Mean of `values` over the positions that the batch counts, member by member when there is a member axis."""
    mask = batch.mask
    if not members:
        return torch.where(mask, values, 0).sum() / mask.sum().clamp(min=1)
    counted = mask.flatten(1).sum(1) if isinstance(batch, MemberBatch) else mask.sum()
    return torch.where(mask, values, 0).flatten(1).sum(1) / counted.clamp(min=1)


def _aligned(logits: Tensor, batch: Batch) -> tuple[Tensor, bool]:
    """Logits cut to the positions that have targets, and whether they have a member axis."""
    examples = batch.mask.ndim - isinstance(batch, MemberBatch)
    if examples >= 2:
        logits = logits[..., -batch.mask.shape[-1] :, :]
    members = logits.ndim - 1 - examples
    require(members in (0, 1), "logits", tuple(logits.shape), f"of {examples + 1} or {examples + 2} axes")
    return logits, bool(members)


def member_loss(logits: Tensor, batch: Batch) -> Tensor:
    """Mean over counted targets of −Σ_s y(s) log p(s), in nats, for each member; p = softmax(logits).

    Predictions for more positions than the batch has targets for are cut to the last ones.
    """
    logits, members = _aligned(logits, batch)
    if batch.soft:
        targets = batch.targets.to(logits.dtype)
        log_probs = F.log_softmax(logits, -1)
        # 0 · log 0 = 0: a class the target excludes costs nothing however sure the prediction is.
        losses = -torch.where(targets > 0, targets * log_probs, 0.0).sum(-1)
    else:
        targets = batch.targets.clamp(min=0).expand(logits.shape[:-1])
        losses = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none").view(logits.shape[:-1])
    return masked_mean(losses, batch, members)


def member_accuracy(logits: Tensor, batch: Batch) -> Tensor:
    """Share of counted targets (for distributions: of their likeliest class) that are the likeliest prediction."""
    logits, members = _aligned(logits, batch)
    targets = batch.targets.argmax(-1) if batch.soft else batch.targets
    return masked_mean((logits.argmax(-1) == targets).to(logits.dtype), batch, members)


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """Cross-entropy against the batch's own targets (classes or distributions) where its mask counts."""

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        return member_loss(logits, batch)


@dataclass(frozen=True)
class NextToken(CrossEntropy):
    """Each position predicts the token after it: inputs x₁…x_{T−1}, targets x₂…x_T.

    For data that come as plain strings; the batches of the worlds already hold the next token as their target.
    """

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        tokens = batch.inputs
        require(tokens.shape[-1] >= 2, "sequence length", tokens.shape[-1], "at least 2")
        mask = batch.mask if batch.mask.shape == tokens.shape else torch.ones_like(tokens, dtype=torch.bool)
        return replace(batch, inputs=tokens[..., :-1], targets=tokens[..., 1:], mask=mask[..., 1:])


@dataclass(frozen=True)
class MaskedToken(CrossEntropy):
    """Hide a share of the tokens and predict them from the rest (Devlin et al. 2019, §3.1).

    rate     share of positions that are predicted; of these, `keep` stay as they are, `swap` become a random token
             below `token`, and the others become `token`, the mask symbol
    """

    token: int
    rate: float = 0.15
    keep: float = 0.1
    swap: float = 0.1

    def __post_init__(self) -> None:
        integer("token", self.token, low=1)
        for name in ("rate", "keep", "swap"):
            number(name, getattr(self, name), low=0.0, high=1.0)
        require(self.keep + self.swap <= 1, "keep + swap", self.keep + self.swap, "at most 1")

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        tokens = batch.inputs
        chosen = torch.rand(tokens.shape, generator=rng, device=rng.device) < self.rate
        fate = torch.rand(tokens.shape, generator=rng, device=rng.device)
        other = torch.randint(self.token, tokens.shape, generator=rng, device=rng.device)
        hidden = torch.where(fate < self.swap, other, self.token)
        hidden = torch.where(fate >= 1 - self.keep, tokens, hidden)
        return replace(batch, inputs=torch.where(chosen, hidden, tokens), targets=tokens, mask=chosen)


@dataclass(frozen=True)
class PositionLabel(CrossEntropy):
    """Each position predicts its latent label: `batch.truth[name]`, of the inputs' shape."""

    name: str

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        labels = _latent(batch, self.name)
        require(labels.shape == batch.inputs.shape, f"truth[{self.name!r}]", tuple(labels.shape), "one per position")
        return replace(batch, targets=labels, mask=torch.ones_like(labels, dtype=torch.bool))


@dataclass(frozen=True)
class LastLabel(CrossEntropy):
    """Only the last position predicts: a latent label of the example, or (no name) the batch's last target."""

    name: str | None = None

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        if self.name is None:
            return replace(batch, targets=batch.targets.narrow(batch.mask.ndim - 1, -1, 1), mask=batch.mask[..., -1:])
        labels = _latent(batch, self.name)
        labels = labels.unsqueeze(-1) if labels.ndim == batch.inputs.ndim - 1 else labels[..., -1:]
        return replace(batch, targets=labels, mask=torch.ones_like(labels, dtype=torch.bool))


@dataclass(frozen=True)
class SoftTarget(CrossEntropy):
    """Cross-entropy against a distribution: the one that `teacher(batch)` gives as log-probabilities.

    With a world's oracle as the teacher this removes the sampling noise of the targets; with a model it is
    distillation. The gradient is that of KL(teacher ‖ model).
    """

    teacher: Callable[[Batch], Tensor]

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        with torch.no_grad():
            probs = self.teacher(batch).exp()
        return replace(batch, targets=probs[..., -batch.mask.shape[-1] :, :].to(torch.get_default_dtype()))


@dataclass(frozen=True)
class SquaredError(Objective):
    """Mean over counted targets of ½‖prediction − target‖², for worlds whose targets are real numbers."""

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        outputs, members = _aligned(logits, batch)
        squares = ((outputs if batch.soft else outputs.squeeze(-1)) - batch.targets.to(outputs.dtype)).square()
        return masked_mean(0.5 * (squares.sum(-1) if batch.soft else squares), batch, members)


OBJECTIVES: dict[str, Callable[[], Objective]] = {
    "cross-entropy": CrossEntropy,
    "next-token": NextToken,
    "last-label": LastLabel,
    "squared-error": SquaredError,
}


def as_objective(given: str | Objective | LossFunction | None) -> Objective:
    """The objective of that name, the given one, or (None) cross-entropy against the batch's targets."""
    if given is None:
        return CrossEntropy()
    if isinstance(given, str):
        return OBJECTIVES[choice("objective", given, OBJECTIVES)]()
    if isinstance(given, Objective):
        return given
    require(callable(given), "objective", given, f"a function (logits, batch) or one of {', '.join(OBJECTIVES)}")
    return _Function(given)


def _latent(batch: Batch, name: str) -> Tensor:
    if name not in batch.truth:
        raise BadInput(f"the batch's truth has no {name!r}: it has {', '.join(batch.truth) or 'nothing'}")
    return batch.truth[name]
