"""Ablations of attention: replaced patterns, single heads set to zero, and heads pruned together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn

from sandlab.errors import BadInput, choice
from sandlab.lenses.predictions import evaluating
from sandlab.lenses.token_accuracy import accuracy_on
from sandlab.models.hooks import matching, patch, record
from sandlab.registry import register
from sandlab.worlds.base import Batch

__all__ = ["accuracy_with_attention", "head_importance", "prune_heads"]

Score: TypeAlias = Callable[[nn.Module, Batch], "float | Tensor"]
"""A measure of a model on a batch, the larger the better."""


@register("lenses")
def accuracy_with_attention(
    model: nn.Module, batch: Batch, how: str, *, rng: torch.Generator | None = None, names: str = "*attention.pattern"
) -> float | Tensor:
    """Accuracy of a trained model when its attention patterns are replaced after training.

    "uniform"   the same weight on every visible key
    "random"    rows drawn uniformly from the simplex
    "self"      only the position itself
    "zero"      no attention output at all (the pattern is 0)
    If the accuracy does not change, the pattern explains nothing.
    """
    choice("how", how, ("uniform", "random", "self", "zero"))
    if how == "random" and rng is None:
        raise BadInput("random attention needs rng: try rng=sandlab.rng(0)")

    def change(pattern: Tensor) -> Tensor:
        allowed = torch.ones_like(pattern).tril()
        if how == "zero":
            return torch.zeros_like(pattern)
        if how == "self":
            return torch.eye(pattern.shape[-1], device=pattern.device, dtype=pattern.dtype).expand_as(pattern)
        if how == "random":
            drawn = torch.empty(pattern.shape, device=pattern.device).exponential_(generator=rng).to(pattern)
            allowed = allowed * drawn
        return allowed / allowed.sum(-1, keepdim=True)

    with patch(model, {names: change}):
        return accuracy_on(model, batch)


@register("lenses")
def head_importance(
    model: nn.Module, batch: Batch, *, score: Score = accuracy_on, names: str = "layers.*.attention.pattern"
) -> dict[tuple[str, int], float]:
    """Drop of the score when one head's attention is set to zero, all others unchanged: (layer name, head) → drop."""
    whole = float(score(model, batch))
    return {
        (name, head): whole - _score_without(model, batch, score, {name: {head}})
        for name, heads in _heads(model, batch, names).items()
        for head in range(heads)
    }


@register("lenses")
def prune_heads(
    model: nn.Module,
    batch: Batch,
    *,
    score: Score = accuracy_on,
    tolerance: float = 0.01,
    names: str = "layers.*.attention.pattern",
) -> list[tuple[str, int]]:
    """Heads that can be removed together while the score drops by at most `tolerance`; greedy, smallest drop first.

    Importance with all other heads present differs from importance with some of them gone: two heads that do the
    same job are each dispensable, but not both.
    """
    whole = float(score(model, batch))
    remaining = {(name, head) for name, heads in _heads(model, batch, names).items() for head in range(heads)}
    removed: list[tuple[str, int]] = []
    while remaining:
        scores = {each: _score_without(model, batch, score, _grouped([*removed, each])) for each in sorted(remaining)}
        best = max(scores, key=scores.__getitem__)
        if whole - scores[best] > tolerance:
            break
        removed.append(best)
        remaining.remove(best)
    return removed


def _heads(model: nn.Module, batch: Batch, names: str) -> dict[str, int]:
    """Number of heads of each attention pattern."""
    with evaluating(model), torch.no_grad(), record(model, names) as cache:
        model(batch.inputs[:1])
    return {name: cache[name].shape[-3] for name in matching(model, names)}


def _grouped(heads: list[tuple[str, int]]) -> dict[str, set[int]]:
    grouped: dict[str, set[int]] = {}
    for name, head in heads:
        grouped.setdefault(name, set()).add(head)
    return grouped


def _score_without(model: nn.Module, batch: Batch, score: Score, heads: dict[str, set[int]]) -> float:
    def without(removed: set[int]) -> Callable[[Tensor], Tensor]:
        def change(pattern: Tensor) -> Tensor:
            keep = torch.ones(pattern.shape[-3], device=pattern.device, dtype=pattern.dtype)
            keep[list(removed)] = 0.0
            return pattern * keep.view(-1, 1, 1)

        return change

    with patch(model, {name: without(removed) for name, removed in heads.items()}):
        return float(score(model, batch))
