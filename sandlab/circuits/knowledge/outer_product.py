"""The associative memory that is written down: a sum of outer products."""

from __future__ import annotations

import math

import torch
from jaxtyping import Int
from scipy.optimize import brentq
from torch import Tensor

from sandlab.errors import require
from sandlab.models.base import seeded
from sandlab.models.knowledge.memories import AssociativeMemory
from sandlab.registry import register

__all__ = ["outer_product_capacity", "outer_product_memory"]


@register("circuits")
def outer_product_memory(table: Int[Tensor, "item"], width: int, *, answers: int | None = None, seed: int = 0) -> (
    AssociativeMemory
):  # fmt: skip
    """W = Σ_x u_{f(x)} e_xᵀ (float64) between random unit vectors drawn with `seed`.

    u_yᵀ W e_x = 1[y = f(x)] + cross-talk of variance about N/d² (and 2/d from the pair x, y itself), so that at
    N ≈ d²/(2 log NM) most items are right and at half as many nearly all.

    Source: Nichani, Lee and Bietti 2024; Willshaw, Buneman and Longuet-Higgins 1969.
    """
    table = torch.as_tensor(table)
    classes = int(table.max()) + 1 if answers is None else answers
    require(int(table.max()) < classes, "answers", classes, f"above the largest answer, {int(table.max())}")
    with seeded(seed):
        model = AssociativeMemory(items=len(table), answers=classes, width=width).double()
    with torch.no_grad():
        for each in (model.embedding, model.unembedding):
            # Unit length in float64, not only to the rounding of the draw.
            each.weight.copy_(torch.nn.functional.normalize(each.weight, dim=-1))
        model.up_proj.weight.copy_(model.unembedding.weight[table].T @ model.embedding.weight)
    return model


def outer_product_capacity(width: int, *, margin: float = 2.0) -> int:
    """N ≈ d²/(c log N²), rounded: c = 2 is the order of magnitude, with c = 4 nearly every item is right."""
    return round(float(brentq(lambda items: margin * 2 * items * math.log(items) - width**2, 1.0, width**2 + 3.0)))
