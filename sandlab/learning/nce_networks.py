"""Contrastive losses and normalised gradient descent for networks that output a log-ratio, for use with `train`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import choice, number, require
from sandlab.learning.nce_losses import MARGIN_LOSSES
from sandlab.worlds.base import Batch

__all__ = ["ContrastiveLoss", "NormalisedDescent"]


@dataclass(frozen=True)
class ContrastiveLoss:
    """Mean over examples of l(y·r), r the difference of the logits of data and noise, y = +1 for data, −1 for noise.

    kind        "nce": l(m) = log(1 + e^(−m)), the two-class cross-entropy; "ence": l(m) = e^(−m/2)
    clip_ratio  K: r is clamped to [−K, K] before the loss; without it eNCE overflows float32 at |r| = 177
    An objective for `train`: logits may have a leading member axis, and the loss then has one value per member.
    """

    kind: str = "nce"
    clip_ratio: float | None = None

    def __post_init__(self) -> None:
        choice("kind", self.kind, MARGIN_LOSSES)
        require(
            self.clip_ratio is None or self.clip_ratio > 0, "clip_ratio", self.clip_ratio, "a positive number or None"
        )

    def __call__(self, logits: Float[Tensor, "*member example two"], batch: Batch) -> Float[Tensor, "*member"]:
        ratio = logits[..., 1] - logits[..., 0]
        if self.clip_ratio is not None:
            ratio = ratio.clamp(-self.clip_ratio, self.clip_ratio)
        margin = (2 * batch.targets - 1) * ratio
        losses = torch.nn.functional.softplus(-margin) if self.kind == "nce" else torch.exp(-margin / 2)
        return losses.mean(-1)


class NormalisedDescent(torch.optim.Optimizer):
    """w ← w − η g/‖g‖₂, the norm over all weights together; weights stay where the gradient is exactly zero.

    Source: Liu 2024 (thesis, CMU-ML-24-110), section 4.1.4; the idea is that of Nesterov 1984 and Hazan et al. 2015.
    """

    def __init__(self, params: Iterable[Any], lr: float = 1e-2) -> None:
        super().__init__(params, {"lr": number("lr", float(lr), low=0.0)})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        weights = [weight for group in self.param_groups for weight in group["params"] if weight.grad is not None]
        if not weights:
            return loss
        # Norms in float64: the squares of a small float32 gradient underflow long before the gradient does.
        gradients = [weight.grad.double() for weight in weights]
        norm = torch.stack(torch._foreach_norm(gradients)).norm()
        torch._foreach_mul_(gradients, torch.where(norm > 0, 1 / torch.where(norm > 0, norm, 1.0), 0.0))
        step = iter(gradients)
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    weight -= group["lr"] * next(step).to(weight.dtype)
        return loss
