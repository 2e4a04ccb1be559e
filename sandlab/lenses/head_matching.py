"""Which attention head attends to which parent: the best one-to-one matching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from sandlab.errors import require
from sandlab.registry import register

__all__ = ["HeadMatch", "attention_on_parents", "match_heads"]


@dataclass(frozen=True)
class HeadMatch:
    """`heads[slot]` is the head that attends to parent number `slot`; `score` the mean attention of matched pairs.

    table  mean attention of each head on each parent (head, slot)
    """

    heads: tuple[int, ...]
    score: float
    table: np.ndarray


def attention_on_parents(
    pattern: Float[Tensor, "*lead head query key"], parents: Sequence[Sequence[int]]
) -> Float[Tensor, "*lead head slot"]:
    """Mean attention that each head pays to the parent in each slot, over the positions that have parents.

    parents[i] lists the parents of position i, the same number for all positions that have any; entries beyond the
    pattern's positions are left out.
    """
    children = [position for position, family in enumerate(parents[: pattern.shape[-2]]) if family]
    require(len(children) > 0, "parents", list(parents), "given for at least one position")
    slots = len(parents[children[0]])
    for child in children:
        require(
            len(parents[child]) == slots, f"parents[{child}]", parents[child], f"{slots} positions, as for the others"
        )
    keys = torch.tensor([parents[child] for child in children], device=pattern.device)
    rows = pattern[..., torch.tensor(children, device=pattern.device), :]
    return rows.gather(-1, keys.expand(*rows.shape[:-1], slots)).mean(-2)


@register("lenses")
def match_heads(pattern: Float[Tensor, "head query key"], parents: Sequence[Sequence[int]]) -> HeadMatch:
    """The assignment of heads to parents with the largest total attention (Hungarian algorithm), and its mean.

    score = max over one-to-one maps σ from parents to heads of mean_slot mean_i α^{σ(slot)}[i, parent_slot(i)]: 1 when
    every parent has its own head, which attends to nothing else. There must be at least as many heads as parents.
    """
    table = attention_on_parents(pattern, parents).double().cpu().numpy()
    require(
        table.shape[0] >= table.shape[1], "heads", table.shape[0], f"at least as many as parents ({table.shape[1]})"
    )
    heads, slots = linear_sum_assignment(-table)
    order = np.argsort(slots)
    return HeadMatch(tuple(int(head) for head in heads[order]), float(table[heads, slots].mean()), table)
