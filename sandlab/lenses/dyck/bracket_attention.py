"""How models read brackets: closing accuracy, stack-like attention, and how much attention varies between seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import integer
from sandlab.lenses.predictions import evaluating
from sandlab.registry import register
from sandlab.worlds.dyck.brackets import scan_brackets

__all__ = [
    "attention_variation",
    "bracket_preference",
    "closing_accuracy",
    "random_attention_variation",
    "random_causal_attention",
    "stack_likeness",
    "variation_per_run",
]


@register("lenses")
def closing_accuracy(
    model: nn.Module,
    tokens: Int[Tensor, "word time"],
    types: int,
    *,
    positions: Sequence[int] | None = None,
    ratio: float = 0.8,
) -> dict[str, Float[Tensor, "*member"]]:
    """Where a bracket is open, does the model prefer the legal closing bracket to the other closing brackets?

    "argmax"     the legal closing bracket is the likeliest of all closing ones
    "threshold"  it has more than `ratio` of the probability of all closing brackets
    Counted are all positions (or only the given ones) at which a bracket is open. Tokens START w_1 w_2 …; type t opens
    with 2t and closes with 2t+1. A population gives one number per member. (Wen et al. 2023, §4.)
    """
    scan = scan_brackets(tokens, types)
    with evaluating(model), torch.no_grad():
        closing = model(tokens)[..., 1 : 2 * types : 2].softmax(-1)
    counted = scan.top >= 0
    if positions is not None:
        chosen = torch.zeros_like(counted)
        chosen[:, list(positions)] = True
        counted = counted & chosen
    top = scan.top.clamp(min=0)
    legal = closing.gather(-1, top.expand(closing.shape[:-1]).unsqueeze(-1)).squeeze(-1)
    total = counted.sum().clamp(min=1)

    def share(hit: Tensor) -> Tensor:
        return (hit & counted).flatten(-2).sum(-1).double() / total

    return {"argmax": share(closing.argmax(-1) == top), "threshold": share(legal > ratio)}


@register("lenses")
def attention_variation(patterns: Float[Tensor, "run *lead query key"]) -> float:
    """Mean of ‖A₁ − A₂‖²_F over pairs of runs (and over axes in between): 0 for equal maps, at most 2 per row."""
    return float(variation_per_run(patterns).mean())


def variation_per_run(patterns: Float[Tensor, "run *lead query key"]) -> Float[Tensor, "run"]:
    """Mean of ‖A − A'‖²_F between each run and the others: `attention_variation` with one number per run."""
    flat = patterns.flatten(1).double()
    words = flat.shape[1] // (patterns.shape[-1] * patterns.shape[-2])
    distances = torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist")
    return distances.square().sum(1) / (words * (len(flat) - 1))


def random_attention_variation(length: int) -> float:
    """E‖A₁ − A₂‖²_F of causal maps whose rows are uniform on their simplex: 4(H_{N+1} − 1) − 2 H_N.

    Row n contributes 2(n − 1)/(n(n + 1)).
    """
    integer("length", length, low=1)
    harmonic = np.cumsum(1 / np.arange(1, length + 2))
    return float(4 * (harmonic[length] - 1) - 2 * harmonic[length - 1])


def random_causal_attention(maps: int, length: int, *, rng: torch.Generator) -> Float[Tensor, "map query key"]:
    """Causal stochastic matrices with rows uniform on the simplex of visible keys."""
    draws = torch.empty(maps, length, length, dtype=torch.float64).exponential_(generator=rng).tril()
    return draws / draws.sum(-1, keepdim=True)


@register("lenses")
def bracket_preference(
    pattern: Float[Tensor, "*lead word head query key"], tokens: Int[Tensor, "word time"], types: int
) -> Float[Tensor, "*lead"]:
    """How clearly some head prefers a kind of token: closing brackets, opening ones, one type, or the position itself.

    The largest mass over heads and kinds in excess of what uniform attention puts there, mean over words and queries:
    0 is no structure, 1 all of it.
    """
    time = tokens.shape[1]
    uniform = torch.ones(time, time, device=tokens.device).tril()
    excess = pattern - uniform / uniform.sum(-1, keepdim=True)
    brackets = tokens < 2 * types
    kinds = [brackets & (tokens % 2 == side) for side in (0, 1)] + [tokens // 2 == kind for kind in range(types)]
    masses = [excess.diagonal(dim1=-2, dim2=-1), *((excess * kind[:, None, None, :]).sum(-1) for kind in kinds)]
    return torch.stack([mass.mean((-3, -1)).amax(-1) for mass in masses]).amax(0)


@register("lenses")
def stack_likeness(
    pattern: Float[Tensor, "*lead word query key"], tokens: Int[Tensor, "word time"], types: int, *, same: bool = False
) -> dict[str, Float[Tensor, "*lead"]]:
    """Does attention point at the bracket that must be closed next?

    mass     mean attention on the last unmatched open bracket, over queries with an open bracket
    argmax   how often it is the row's maximum
    same     count all open brackets of the same type and depth as one (models without positions cannot tell them
             apart)
    """
    scan = scan_brackets(tokens, types)
    counted = scan.opener >= 0
    opener = scan.opener.clamp(min=0)
    time = tokens.shape[1]
    if same:
        opens = (tokens < 2 * types) & (tokens % 2 == 0)
        label = torch.where(opens, tokens * (time + 1) + scan.depth, -1)
        hit = label.unsqueeze(1) == label.gather(1, opener).unsqueeze(2)
    else:
        hit = torch.arange(time, device=tokens.device) == opener.unsqueeze(-1)
    mass = (pattern * hit).sum(-1)
    largest = hit.expand(pattern.shape).gather(-1, pattern.argmax(-1, keepdim=True)).squeeze(-1)
    total = counted.sum().clamp(min=1)

    def mean(values: Tensor) -> Tensor:
        return torch.where(counted, values.double(), 0.0).flatten(-2).sum(-1) / total

    return {"mass": mean(mass), "argmax": mean(largest)}
