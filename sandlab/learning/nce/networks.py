"""Contrastive losses for networks that output a log-ratio, for use with `train`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import choice, require
from sandlab.learning.nce.losses import MARGIN_LOSSES
from sandlab.learning.objectives import Objective
from sandlab.worlds.base import Batch

__all__ = ["ContrastiveLoss"]


@dataclass(frozen=True)
class ContrastiveLoss(Objective):
    """Mean over examples of l(y·r), r the difference of the logits of data and noise, y = +1 for data, −1 for noise.

    kind        "nce": l(m) = log(1 + e^(−m)), the two-class cross-entropy; "ence": l(m) = e^(−m/2)
    clip_ratio  K: r is clamped to [−K, K] before the loss; without it eNCE overflows float32 at |r| = 177
    An objective for `train`: with a leading member axis of the logits, the loss has one value per member.
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
