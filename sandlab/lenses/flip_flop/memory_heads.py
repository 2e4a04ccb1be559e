"""Is a head the ideal memory head, one-hot on the latest write? Do heads differ? (Liu et al. 2023, §5)."""

from __future__ import annotations

from itertools import combinations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.lenses.predictions import evaluating
from sandlab.models.hooks import record
from sandlab.registry import register

__all__ = ["attention_entropy", "head_differences", "ideal_memory_score", "value_norm_importance"]


@register("lenses")
def ideal_memory_score(
    pattern: Float[Tensor, "example head query key"],
    operations: Int[Tensor, "example time"],
    latest: Int[Tensor, "example time"],
) -> dict[str, Float[Tensor, "head"]]:
    """How close each head is to "one-hot on the most recent write", on `FlipFlopTransduction` inputs (0 is a no-op).

    mass_idle, hit_idle     mean attention on the latest write, and how often it is the row's maximum, at no-ops
    mass_write, hit_write   the same at writes (a write may ignore itself: the residual stream carries it)
    type_mass               mean mass on all earlier writes of the right symbol: the dense alternative
    """
    on_latest = pattern.gather(-1, latest[:, None, :, None].expand(*pattern.shape[:-1], 1)).squeeze(-1)
    hit = (pattern.argmax(-1) == latest.unsqueeze(1)).to(pattern.dtype)
    stored = operations.gather(1, latest)
    right_type = (operations.unsqueeze(1) == stored.unsqueeze(-1)).unsqueeze(1)
    type_mass = (pattern * right_type).sum(-1)
    idle = (operations == 0).unsqueeze(1)

    def mean(values: Tensor, where: Tensor) -> Tensor:
        where = where.expand_as(values)
        return torch.where(where, values, 0.0).sum((0, 2)) / where.sum((0, 2)).clamp(min=1)

    return {
        "mass_idle": mean(on_latest, idle),
        "hit_idle": mean(hit, idle),
        "mass_write": mean(on_latest, ~idle),
        "hit_write": mean(hit, ~idle),
        "type_mass": mean(type_mass, idle),
    }


def attention_entropy(pattern: Float[Tensor, "*lead head query key"]) -> Float[Tensor, "*lead head query"]:
    """−Σ_j α_j ln α_j of each row."""
    return torch.special.entr(pattern).sum(-1)


@register("lenses")
def head_differences(pattern: Float[Tensor, "*lead head query key"]) -> Float[Tensor, "*lead pair"]:
    """‖A_h − A_h'‖_F for every pair of heads of one layer: do they specialise?"""
    pairs = list(combinations(range(pattern.shape[-3]), 2))
    first, second = (torch.tensor([pair[side] for pair in pairs]) for side in (0, 1))
    return (pattern[..., first, :, :] - pattern[..., second, :, :]).square().sum((-1, -2)).sqrt()


@register("lenses")
def value_norm_importance(
    model: nn.Module, inputs: Int[Tensor, "example time"], layer: int
) -> Float[Tensor, "example head query key"]:
    """α_ij ‖(x_j W_V) W_O‖₂: attention weighed by what is carried over (Kobayashi et al. 2020).

    A large weight on a token whose value is mapped to nothing does not matter; the row maximum of this product says
    more about the answer than that of α.
    """
    name = f"layers.{layer}.attention"
    with evaluating(model), torch.no_grad(), record(model, f"{name}.pattern", f"{name}.value") as cache:
        model(inputs)
    pattern = cache[f"{name}.pattern"]
    heads = pattern.shape[-3]
    value = cache[f"{name}.value"].unflatten(-1, (heads, -1))
    attention = model.get_submodule(name)
    weight = getattr(attention.output, "weight", None)
    if weight is None:  # heads write into the stream themselves
        carried = value.norm(dim=-1)
    else:
        per_head = weight.detach().unflatten(-1, (heads, -1))
        carried = torch.einsum("bthd,whd->bthw", value, per_head).norm(dim=-1)
    return pattern * carried.transpose(-1, -2).unsqueeze(-2)
