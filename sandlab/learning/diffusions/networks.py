"""Neural contrastive classifiers: the squared loss as an objective of training, and the logit of a trained network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from sandlab.learning.objectives import MemberBatch, Objective, masked_mean
from sandlab.worlds.base import Batch

__all__ = ["ContrastiveSquares", "network_logit"]


@dataclass(frozen=True)
class ContrastiveSquares(Objective):
    """(h − y)² with h the probability of class 1 among two (eq. 2.5); its minimiser is that of the cross-entropy."""

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        members = logits.ndim - 1 - batch.mask.ndim + isinstance(batch, MemberBatch)
        h = torch.sigmoid(logits[..., 1] - logits[..., 0])
        return masked_mean((h - batch.targets.to(h.dtype)).square(), batch, bool(members))


def network_logit(model: nn.Module) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """u(x, x′) of a network with two classes that reads (x, x′): the logit that `KernelEstimate` takes."""
    device = next(model.parameters()).device

    def logit(x: np.ndarray, later: np.ndarray) -> np.ndarray:
        both = np.concatenate(np.broadcast_arrays(x, later), -1)
        with torch.no_grad():
            found = model(torch.from_numpy(both.reshape(-1, both.shape[-1])).float().to(device))[:, 0]
        return (found[:, 1] - found[:, 0]).double().cpu().numpy().reshape(both.shape[:-1])

    return logit
