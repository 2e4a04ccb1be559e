"""Attention patterns of a model on a batch, and how well they match a given pattern."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import BadInput, integer, require
from sandlab.lenses.predictions import evaluating
from sandlab.models.hooks import record
from sandlab.registry import register

__all__ = ["attention_maps", "attention_match", "look_back", "parent_pattern", "same_token_successor"]


@register("lenses")
def attention_maps(
    model: nn.Module, inputs: Tensor, *, average: bool = True, names: str = "*attention.pattern"
) -> dict[str, Float[Tensor, "*member _head _query _key"]]:
    """Every attention pattern of the model on these inputs, averaged over the examples unless `average=False`.

    Names are the activations' names, in the order of the layers; a population's member axis is first. A layer
    that is applied several times gives one pattern per pass, as `name#0`, `name#1`, …
    """
    with evaluating(model), torch.no_grad(), record(model, names) as cache:
        model(inputs)
    repeated = {name.split("#")[0] for name in cache if "#" in name}
    kept = {name: cache[name] for name in cache if name not in repeated}
    if not kept:
        raise BadInput(f"{type(model).__name__} has no activation called {names!r}: it has no attention to record")
    return {name: pattern.mean(-4) if average else pattern for name, pattern in kept.items()}


@register("lenses")
def attention_match(pattern: Tensor, target: Tensor, *, skip: int = 0) -> Float[Tensor, "*lead"]:
    """1 − mean over queries of the total variation between attention and a target pattern: 1 is a perfect match.

    match = 1 − mean_i ½ Σ_j |α_ij − τ_ij|. For a target with one key per query this is the mean attention on that
    key. Queries whose target row is zero (positions without a parent) and the first `skip` queries are left out.
    """
    integer("skip", skip, low=0)
    require(pattern.shape[-2:] == target.shape[-2:], "target", tuple(target.shape), f"{tuple(pattern.shape[-2:])}")
    target = target.to(pattern)
    counted = (target.sum(-1) > 0) & (torch.arange(target.shape[-2], device=target.device) >= skip)
    distance = 0.5 * (pattern - target).abs().sum(-1)
    counted = counted.expand(distance.shape)
    return 1 - torch.where(counted, distance, 0.0).sum(-1) / counted.sum(-1).clamp(min=1)


def look_back(length: int, lag: int = 1) -> Float[Tensor, "query key"]:
    """Each position attends to the one `lag` before it; positions without one have a zero row."""
    integer("length", length, low=1)
    integer("lag", lag, low=0)
    return torch.diag(torch.ones(max(length - lag, 0), dtype=torch.float64), -lag)[:length, :length]


def parent_pattern(parents: Sequence[int]) -> Float[Tensor, "query key"]:
    """Each position attends to its parent; −1 marks a root, whose row is zero."""
    index = torch.tensor(list(parents))
    require(bool((index < torch.arange(len(index))).all()), "parents", list(parents), "before their children")
    pattern = torch.zeros(len(index), len(index), dtype=torch.float64)
    has_parent = torch.nonzero(index >= 0).flatten()
    pattern[has_parent, index[has_parent]] = 1.0
    return pattern


def same_token_successor(tokens: Tensor) -> Float[Tensor, "example query key"]:
    """The induction pattern: uniform over earlier positions whose predecessor carries the query's token.

    τ_ij ∝ 1[j ≤ i, x_{j−1} = x_i]; queries whose token has not occurred before have a zero row.
    """
    earlier = torch.ones(tokens.shape[-1], tokens.shape[-1], device=tokens.device).tril().bool()
    before = torch.cat([torch.full_like(tokens[:, :1], -1), tokens[:, :-1]], -1)
    match = ((before.unsqueeze(-2) == tokens.unsqueeze(-1)) & earlier).double()
    return match / match.sum(-1, keepdim=True).clamp(min=1)
