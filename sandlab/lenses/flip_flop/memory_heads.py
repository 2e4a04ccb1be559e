"""Memory heads: attention on the latest write, its entropy, and differences between heads (Liu et al. 2023, §5)."""

from __future__ import annotations

from itertools import combinations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.predictions import evaluating
from sandlab.models.attention import Attention
from sandlab.models.hooks import record
from sandlab.models.layers import Linear
from sandlab.registry import register
from sandlab.worlds.base import Batch

__all__ = [
    "attention_entropy",
    "head_differences",
    "ideal_memory_score",
    "misleading_rows",
    "value_norm_importance",
]


@register("lenses")
def ideal_memory_score(
    pattern: Float[Tensor, "example head query key"],
    operations: Int[Tensor, "example time"],
    latest: Int[Tensor, "example time"],
) -> dict[str, Float[Tensor, "head"]]:
    """How close each head is to "one-hot on the most recent write", on `FlipFlopTransduction` inputs (0 is a no-op).

    mass_idle, hit_idle     mean attention on the latest write, and share of rows whose maximum it is, at no-ops
    mass_write, hit_write   the same at writes (a write need not attend to itself: the residual stream carries it)
    type_mass               mean attention on all writes of the stored symbol: the dense alternative
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
    """Entropy −Σ_j α_j ln α_j of each row, in nats."""
    return torch.special.entr(pattern).sum(-1)


@register("lenses")
def head_differences(pattern: Float[Tensor, "*lead head query key"]) -> Float[Tensor, "*lead pair"]:
    """‖A_h − A_h'‖_F for every pair of heads of one layer."""
    pairs = list(combinations(range(pattern.shape[-3]), 2))
    first, second = (torch.tensor([pair[side] for pair in pairs]) for side in (0, 1))
    return (pattern[..., first, :, :] - pattern[..., second, :, :]).square().sum((-1, -2)).sqrt()


@register("lenses")
def value_norm_importance(
    model: nn.Module, inputs: Int[Tensor, "example time"], layer: int
) -> Float[Tensor, "example head query key"]:
    """α_ij ‖(x_j W_V) W_O‖₂: attention weighted by the norm of the transferred vector (Kobayashi et al. 2020).

    A large weight on a token with a small value vector has little effect.
    """
    name = f"layers.{layer}.attention"
    with evaluating(model), torch.no_grad(), record(model, f"{name}.pattern", f"{name}.value") as cache:
        model(inputs)
    pattern = cache[f"{name}.pattern"]
    heads = pattern.shape[-3]
    value = cache[f"{name}.value"].unflatten(-1, (heads, -1))
    attention = model.get_submodule(name)
    assert isinstance(attention, Attention)
    if isinstance(attention.output, Linear):
        per_head = attention.output.weight.detach().unflatten(-1, (heads, -1))
        value = torch.einsum("bthd,whd->bthw", value, per_head)
    return pattern * value.norm(dim=-1).transpose(-1, -2).unsqueeze(-2)


def misleading_rows(model: nn.Module, batch: Batch, layer: int) -> tuple[float, float, float]:
    """Rows of a layer whose largest weight is on a wrong token although the answer is right (`FlipFlopTransduction`).

    Returns their share of all rows, the share of them in which the largest importance (`value_norm_importance`) is on a
    right token, and by how much the largest importance is on a right token in more rows than the largest weight, among
    all rows with a right answer. A right token writes the stored symbol; of several heads the largest number decides.
    """
    with evaluating(model), torch.no_grad():
        right_answer = model(batch.inputs).argmax(-1) == batch.targets
    pattern = attention_maps(model, batch.inputs, average=False)[f"layers.{layer}.attention.pattern"]
    right_token = batch.inputs.unsqueeze(1) == (batch.targets + 1).unsqueeze(-1)

    def on_right_token(weights: Float[Tensor, "example head query key"]) -> Tensor:
        return right_token.gather(2, weights.amax(1).argmax(-1, keepdim=True)).squeeze(-1)

    by_weight = on_right_token(pattern)
    by_importance = on_right_token(value_norm_importance(model, batch.inputs, layer))
    misled = right_answer & ~by_weight
    gain = by_importance[right_answer].double() - by_weight[right_answer].double()
    share = float(misled.double().mean())
    return share, _mean(by_importance[misled]), _mean(gain)


def _mean(values: Tensor) -> float:
    """0 when there are none."""
    return float(values.double().mean()) if len(values) else 0.0
