"""Pumping: what a model still knows of an open bracket after many matched pairs (Wen et al. 2023, Theorem 1)."""

from __future__ import annotations

import numpy as np
import torch

from sandlab.lenses.dyck.balance import balance_report
from sandlab.lenses.dyck.balance_bounds import pumped_twins
from sandlab.models.dyck.codes import BalanceTransformer
from sandlab.models.hooks import record
from sandlab.registry import register

__all__ = ["least_confusion", "pumped_attention", "pumped_memory"]


@register("lenses")
def pumped_memory(model: BalanceTransformer, pairs: int) -> float:
    """Distance of the normed outputs after ( w [] and after [ w [], where w consists of `pairs` matched pairs ().

    A balanced model keeps it however long w is; otherwise it goes to 0 like 1/pairs.
    """
    first, second = _last(model, "layers.0.normed", (0, 2), pairs)
    return float((first - second).norm())


def pumped_attention(model: BalanceTransformer, pairs: int) -> float:
    """Length of the attention's output before the norm, at the end of ( w [], w as in `pumped_memory`."""
    (output,) = _last(model, "layers.0.z", (0,), pairs)
    return float(output.norm())


def least_confusion(model: BalanceTransformer, length: int) -> float:
    """How surely a violation of balance makes the model wrong on one of two words of this length.

    For each query and pair whose residue does not vanish, the larger error on the two words that pumping makes alike
    (`pumped_twins`), over half the distance of their true distributions; the smallest of these, 0 if there are none.
    """
    found = []
    for query, kind, level, pair in np.argwhere(balance_report(model).ratios > 1e-6).tolist():
        twins = pumped_twins(model, length, (query + 2, kind), (level + 1, pair))
        found.append(max(twins.errors) / (twins.probs_distance / 2))
    return min(found, default=0.0)


def _last(model: BalanceTransformer, activation: str, tops: tuple[int, ...], pairs: int) -> torch.Tensor:
    """An activation at the end of START top ()()…() []."""
    words = torch.tensor([[2 * model.config.types, top, *[0, 1] * pairs, 2, 3] for top in tops])
    with record(model, activation) as cache, torch.no_grad():
        model(words)
    return cache[activation][:, -1]
