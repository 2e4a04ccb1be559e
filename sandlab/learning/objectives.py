"""What training minimises: cross-entropy against tokens, labels or laws, for one model or a population.

An objective is any function `objective(logits, batch) -> loss`. Logits of a population have one axis more than those of
one model, the member axis, first; the loss is then one number per member. An objective may also have a method
`prepare(batch, *, rng) -> Batch` that changes each batch before the model sees it (shift it, hide tokens), and a method
`whole(forward, batch) -> loss` that is called instead when the loss needs more than the logits: it runs the model
itself through `forward`, as often as it likes, and may record activations (see penalties.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from sandlab.errors import BadInput, choice, integer, number, require
from sandlab.worlds.base import Batch

__all__ = [
    "OBJECTIVES",
    "CrossEntropy",
    "Forward",
    "LastLabel",
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
    "member_losses",
]


class Objective(Protocol):
    """A loss: one number for one model, one per member for a population."""

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor: ...


@dataclass(frozen=True)
class Forward:
    """The model as a loss sees it during a training step.

    call      inputs → logits, with a member axis when the members are computed together
    names     the module whose activations `record` and `replace` find by name
    step      number of updates done so far
    """

    call: Callable[[Tensor], Tensor]
    names: Any
    step: int

    def __call__(self, inputs: Tensor) -> Tensor:
        return self.call(inputs)


def member_losses(objective: Objective, forward: Forward, batch: Batch) -> Tensor:
    """The objective's loss of the model behind `forward`."""
    whole = getattr(objective, "whole", None)
    return objective(forward(batch.inputs), batch) if whole is None else whole(forward, batch)


@dataclass(frozen=True)
class MemberBatch(Batch):
    """A batch with a member axis before the example axis: each member has examples of its own."""

    def __len__(self) -> int:
        return self.inputs.shape[1]


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
    """Share of counted targets (for laws: of their likeliest class) that are the likeliest prediction."""
    logits, members = _aligned(logits, batch)
    targets = batch.targets.argmax(-1) if batch.soft else batch.targets
    return masked_mean((logits.argmax(-1) == targets).to(logits.dtype), batch, members)


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy against the batch's own targets (classes or laws) where its mask counts."""

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        return member_loss(logits, batch)


@dataclass(frozen=True)
class NextToken(CrossEntropy):
    """Each position predicts the token after it: inputs x₁…x_{T−1}, targets x₂…x_T.

    For data that come as plain strings; the worlds' own batches already hold the next token as their target.
    """

    def prepare(self, batch: Batch, *, rng: torch.Generator) -> Batch:
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

    def prepare(self, batch: Batch, *, rng: torch.Generator) -> Batch:
        tokens = batch.inputs
        chosen = torch.rand(tokens.shape, generator=rng, device=rng.device) < self.rate
        fate = torch.rand(tokens.shape, generator=rng, device=rng.device)
        other = torch.randint(self.token, tokens.shape, generator=rng, device=rng.device)
        hidden = torch.where(fate < self.swap, other, self.token)
        hidden = torch.where(fate >= 1 - self.keep, tokens, hidden)
        return replace(batch, inputs=torch.where(chosen, hidden, tokens), targets=tokens, mask=chosen)


@dataclass(frozen=True)
class PositionLabel(CrossEntropy):
    """Each position predicts a latent label of its own: `batch.truth[name]`, of the inputs' shape."""

    name: str

    def prepare(self, batch: Batch, *, rng: torch.Generator) -> Batch:
        labels = _latent(batch, self.name)
        require(labels.shape == batch.inputs.shape, f"truth[{self.name!r}]", tuple(labels.shape), "one per position")
        return replace(batch, targets=labels, mask=torch.ones_like(labels, dtype=torch.bool))


@dataclass(frozen=True)
class LastLabel(CrossEntropy):
    """Only the last position predicts: a latent label of the example, or (no name) the batch's last target."""

    name: str | None = None

    def prepare(self, batch: Batch, *, rng: torch.Generator) -> Batch:
        if self.name is None:
            keep = batch.mask.ndim - 1
            return replace(batch, targets=batch.targets.narrow(keep, -1, 1), mask=batch.mask[..., -1:])
        labels = _latent(batch, self.name)
        lead = batch.inputs.ndim - 1
        labels = labels.unsqueeze(-1) if labels.ndim == lead else labels[..., -1:]
        return replace(batch, targets=labels, mask=torch.ones_like(labels, dtype=torch.bool))


@dataclass(frozen=True)
class SoftTarget(CrossEntropy):
    """Cross-entropy against a law: the one that `teacher(batch)` gives as log-probabilities.

    With a world's oracle as the teacher this removes the sampling noise of the targets; with a model it is
    distillation. The gradient is that of KL(teacher ‖ model).
    """

    teacher: Callable[[Batch], Tensor]

    def prepare(self, batch: Batch, *, rng: torch.Generator) -> Batch:
        with torch.no_grad():
            law = self.teacher(batch).exp()
        return replace(batch, targets=law[..., -batch.mask.shape[-1] :, :].to(torch.get_default_dtype()))


@dataclass(frozen=True)
class SquaredError:
    """Mean over counted targets of ½‖prediction − target‖², for worlds whose targets are real numbers."""

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        soft = batch.targets.ndim == batch.mask.ndim + 1
        outputs, members = _aligned(logits, batch)
        difference = (outputs if soft else outputs.squeeze(-1)) - batch.targets.to(outputs.dtype)
        squares = difference.square()
        return masked_mean(0.5 * (squares.sum(-1) if soft else squares), batch, members)


OBJECTIVES: dict[str, Callable[[], Any]] = {
    "cross-entropy": CrossEntropy,
    "next-token": NextToken,
    "last-label": LastLabel,
    "squared-error": SquaredError,
}


def as_objective(given: str | Objective | None) -> Objective:
    """The objective of that name, the given function, or (None) cross-entropy against the batch's targets."""
    if given is None:
        return CrossEntropy()
    if isinstance(given, str):
        return OBJECTIVES[choice("objective", given, OBJECTIVES)]()
    require(callable(given), "objective", given, f"a function (logits, batch) or one of {', '.join(OBJECTIVES)}")
    return given


def _latent(batch: Batch, name: str) -> Tensor:
    if name not in batch.truth:
        raise BadInput(f"the batch's truth has no {name!r}: it has {', '.join(batch.truth) or 'nothing'}")
    return batch.truth[name]
