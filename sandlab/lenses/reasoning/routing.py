"""Which clauses the query matrix routes to: its blocks, and the diagonals of the two that matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.learning.experiment import Snapshot
from sandlab.models.reasoning.lego import LegoTransformer
from sandlab.models.reasoning.theory import LegoTheoryTransformer
from sandlab.registry import register
from sandlab.worlds.reasoning.lego import Lego

__all__ = ["RoutingBlocks", "block_norms", "q_diagonal", "routing_blocks"]

SLOTS = 5


@dataclass(frozen=True)
class RoutingBlocks:
    """Diagonals and off-diagonals of the blocks (4,3) and (4,4) on the variables.

    ratio   largest off-diagonal entry over the mean diagonal of each block
    """

    predicate: np.ndarray
    answer: np.ndarray
    ratio: tuple[float, float]


def _query_key(model: LegoTransformer | LegoTheoryTransformer) -> Float[Tensor, "slot token slot token"]:
    """Q in token coordinates, mean over heads: [p, a, q, b] scores query token a in slot p with key b in slot q."""
    d = model.config.vocab
    if isinstance(model, LegoTheoryTransformer):
        whole = torch.zeros(SLOTS, d, SLOTS, d, dtype=model.weight.dtype)
        if model.config.block_sparse:
            whole[3, :, 2], whole[3, :, 3] = model.q43.detach(), model.q44.detach()
            return whole
        return model.q.detach().view(SLOTS, d, SLOTS, d)
    attention, config = model.layers[0].attention, model.config
    query, key = (
        part.weight.detach().view(config.heads, -1, SLOTS, config.token_width)
        for part in (attention.query, attention.key)
    )
    table = model.embedding.weight.detach().clone()
    table[-1] = 0.0
    joint = torch.einsum("hkpu,hkqv->puqv", query, key) / config.heads / config.head_width**0.5
    return torch.einsum("puqv,au,bv->paqb", joint, table, table)


@register("lenses")
def q_diagonal(model: LegoTransformer | LegoTheoryTransformer, variables: int) -> RoutingBlocks:
    """[Q_{4,3}]_{ss} and [Q_{4,4}]_{ss} of every variable against the off-diagonal entries.

    For a trained transformer Q is W_Qᵀ W_K between token vectors, mean over heads; entries are taken relative to the
    mean of their row, which softmax does not see. The theory bounds off-diagonals by diagonal/d.

    Source: Huang et al. 2025, section 6.2, appendices D–F.
    """
    whole = _query_key(model)[:, :variables, :, :variables].double().numpy()
    blocks = [whole[3, :, 2], whole[3, :, 3]]
    if not isinstance(model, LegoTheoryTransformer):
        blocks = [block - block.mean(1, keepdims=True) for block in blocks]
    diagonals = [np.diag(block) for block in blocks]
    off = [np.abs(block - np.diag(np.diag(block))).max() for block in blocks]
    first, second = (float(rest / max(abs(line.mean()), 1e-300)) for rest, line in zip(off, diagonals))
    return RoutingBlocks(diagonals[0], diagonals[1], (first, second))


@register("lenses")
def block_norms(model: LegoTransformer | LegoTheoryTransformer, variables: int) -> Float[np.ndarray, "query key"]:
    """Mean diagonal minus mean off-diagonal entry of each of the 25 blocks of Q on the variables."""
    whole = _query_key(model)[:, :variables, :, :variables].double().numpy()
    eye = np.eye(variables, dtype=bool)
    same, other = (
        whole[:, eye.nonzero()[0], :, eye.nonzero()[1]].mean(0),
        whole.transpose(0, 2, 1, 3)[..., ~eye].mean(-1),
    )
    return np.asarray(same - other)


def routing_blocks(snapshot: Snapshot) -> Mapping[str, Any]:
    """A probe: "blocks" (member, 5, 5), how much more each block of Q scores equal than different variables."""
    world, population = snapshot.world, snapshot.model
    assert isinstance(world, Lego)
    members = [population.member(index).cpu() for index in range(len(population))]
    return {"blocks": np.stack([block_norms(member, world.variables) for member in members])}
