"""Attention of models trained on Markov data: the causal tree, the induction head, the attention sink.

Every measurement takes one model or a population, whose member axis then comes first.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sandlab.learning.objectives import member_loss
from sandlab.lenses.attention_patterns import (
    attention_maps,
    attention_match,
    look_back,
    parent_pattern,
    same_token_successor,
)
from sandlab.lenses.predictions import evaluating
from sandlab.models.hooks import record
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.markov.causal_graphs import InContextTree

__all__ = [
    "StartToken",
    "TreeAttention",
    "attention_on_start",
    "induction_match",
    "sharpened_attention",
    "tree_attention",
]


@dataclass(frozen=True)
class TreeAttention:
    """The causal tree as a model's first layer shows it.

    pattern   mean attention of the first head (query, key), without the last position, which is the query of the task
    match     mean attention on the true parents
    edges     for each position with a parent: whether the parent has the largest attention of the earlier positions
    """

    pattern: Float[Tensor, "*member query key"]
    match: Float[Tensor, "*member"]
    edges: Bool[Tensor, "*member edge"]


@register("lenses")
def tree_attention(model: nn.Module, tokens: Int[Tensor, "example time"], parents: Sequence[int]) -> TreeAttention:
    """How well the first layer's attention shows the causal tree of `InContextTree` (−1 marks a root).

    Source: Nichani, Damian & Lee 2024, "How transformers learn causal structure with gradient descent".
    """
    pattern = next(iter(attention_maps(model, tokens).values()))[..., 0, :-1, :-1]
    children = [child for child, parent in enumerate(parents[:-1]) if parent >= 0]
    truth = torch.tensor([parents[child] for child in children], device=pattern.device)
    largest = pattern.tril(-1).argmax(-1)[..., children]
    match = attention_match(pattern, parent_pattern(parents)[:-1, :-1].to(pattern))
    return TreeAttention(pattern, match, largest == truth)


def sharpened_attention(
    model: DisentangledTransformer,
    world: InContextTree,
    batch: Batch,
    scales: Sequence[float] = (0.6, 0.7, 0.8, 0.9, 1.0),
) -> dict[str, float]:
    """What one-hot attention would gain a model trained on a causal tree.

    "match" and "loss" as it is; "sharp match" and "sharp loss" with A¹ increased by 4 at every parent, and A²
    multiplied by the best of `scales`.
    """
    model = copy.deepcopy(model)
    first, second = (model.get_parameter(f"layers.{layer}.attention.weight") for layer in (0, 1))
    children, parents = torch.tensor(world.edges, device=first.device).T

    def measure() -> tuple[float, float]:
        match = tree_attention(model, batch.inputs[:256], world.parents).match
        return float(member_loss(model(batch.inputs), batch)), float(match)

    with torch.no_grad():
        loss, match = measure()
        first[0, world.states + children, world.states + parents] += 4.0
        trained, sharp = second.clone(), []
        for scale in scales:
            second.copy_(scale * trained)
            sharp.append(measure())
    return {"match": match, "loss": loss, "sharp match": min(sharp)[1], "sharp loss": min(sharp)[0]}


@register("lenses")
def induction_match(model: nn.Module, tokens: Int[Tensor, "example time"]) -> dict[str, Float[Tensor, "*member"]]:
    """How well the first heads of the first and of the last layer match the two parts of an induction head.

    "previous"    mean attention of the first layer on the previous token
    "successor"   1 − mean total variation between the last layer's attention and the uniform distribution on the tokens
                  that followed earlier occurrences of the query's token
    """
    patterns = [pattern[..., 0, :, :] for pattern in attention_maps(model, tokens, average=False).values()]
    previous = look_back(tokens.shape[-1]).to(tokens.device)
    return {
        "previous": attention_match(patterns[0].mean(-3), previous, skip=1),
        "successor": attention_match(patterns[-1], same_token_successor(tokens), skip=8).mean(-1),
    }


@dataclass(frozen=True)
class StartToken:
    """The last layer's first head and the start token.

    dormant, active   mean attention to the start token where there is nothing to do, and where there is
    value, others     mean norm of the start token's value, and of all others
    stream            norm of the start token's residual stream relative to the mean of the others
    pattern           attention of each example (query, key)
    """

    dormant: Float[Tensor, "*member"]
    active: Float[Tensor, "*member"]
    value: Float[Tensor, "*member"]
    others: Float[Tensor, "*member"]
    stream: Float[Tensor, "*member"]
    pattern: Float[Tensor, "*member example query key"]


@register("lenses")
def attention_on_start(
    model: nn.Module, tokens: Int[Tensor, "example time"], busy: Bool[Tensor, "example time"]
) -> StartToken:
    """Whether a head rests on the first token (an attention sink) on all tokens but the `busy` ones.

    The first two queries are left out: there is hardly anything else to attend to.

    Source: Guo et al. 2024, "Active-dormant attention heads".
    """
    names = ("attention.pattern", "attention.value", "resid_post")
    with evaluating(model), torch.no_grad(), record(model, *(f"layers.*.{name}" for name in names)) as cache:
        model(tokens)
    last = max(name.split(".")[1] for name in cache)
    pattern, value, stream = (cache[f"layers.{last}.{name}"] for name in names)
    on_start, norms, sizes = pattern[..., 0, 2:, 0], value.norm(dim=-1), stream.norm(dim=-1)
    return StartToken(
        dormant=on_start[..., ~busy[:, 2:]].mean(-1),
        active=on_start[..., busy[:, 2:]].mean(-1),
        value=norms[..., 0].mean(-1),
        others=norms[..., 1:].mean((-1, -2)),
        stream=sizes[..., 0].mean(-1) / sizes[..., 1:].mean((-1, -2)),
        pattern=pattern[..., 0, :, :],
    )
