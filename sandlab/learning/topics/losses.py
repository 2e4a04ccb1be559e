"""The squared loss of masked prediction. The cross-entropy is `CrossEntropy`."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from sandlab.errors import choice
from sandlab.learning.objectives import MemberBatch, Objective, masked_mean
from sandlab.worlds.base import Batch

__all__ = ["MaskedSquares", "frobenius"]


def frobenius(strength: float) -> float:
    """The weight decay of SGD or Adam (not AdamW) whose steps are those of the penalty λ‖θ‖²: 2λ."""
    return 2 * strength


@dataclass(frozen=True)
class MaskedSquares(Objective):
    """Mean over predicted positions of ‖f − e_w‖², w the true word (equation 2.3 of Li 2024).

    reduction   over the vocabulary: "sum", as in the formula, or "mean", with gradients smaller by its size
    """

    reduction: str = "sum"

    def __post_init__(self) -> None:
        choice("reduction", self.reduction, ("sum", "mean"))

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        logits = logits[..., -batch.mask.shape[-1] :, :]
        members = logits.ndim - 1 > batch.targets.ndim or isinstance(batch, MemberBatch)
        targets = batch.targets.expand(logits.shape[:-1])
        squares = logits.square().sum(-1) + 1 - 2 * logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        scale = logits.shape[-1] if self.reduction == "mean" else 1
        return masked_mean(squares / scale, batch, members)
