"""The induction head in two layers of one head each, with a width that does not grow with the length."""

from __future__ import annotations

import math
from typing import Any, cast

import torch

from sandlab.errors import integer, number
from sandlab.models.transformer import Transformer
from sandlab.registry import register

__all__ = ["induction_head"]


@register("circuits")
def induction_head(
    states: int, length: int, *, temperature: float = 40.0, smoothing: float = 1e-300, read: str = "all"
) -> Transformer:
    """What followed earlier occurrences of the present token: layer 1 looks one back, layer 2 finds it again.

    Positions are points (cos θi, sin θi) of a quarter circle, θ = π/(2T): a query turned back by θ meets position i − 1
    head-on, β₁ cos(θ(i − 1 − j)) with β₁ = c/(1 − cos θ) = O(cT²). Layer 1 writes e_{x_{i−1}} into a second block; in
    layer 2 the query reads block 0 and the key block 1, score c · 1[x_{j−1} = x_i], value = the token of j. Width
    3S + 2, one head a layer, weights of O(log T) bits. The output is log of the averaged followers (c → ∞: the clamped
    order-1 estimator; position 0 looks at itself), with ε = `smoothing` inside the logarithm.

    Source: Bietti et al. 2023; Sanford, Hsu and Telgarsky 2024; the k = 1 case of Varre, Yüce and Flammarion 2025.
    """
    integer("states", states, low=1)
    integer("length", length, low=1)
    number("temperature", temperature, low=0.0)
    width = 3 * states + 2
    model = Transformer(
        vocab=states, length=length, layers=2, heads=1, width=width, head_width=max(states, 2), mlp="none", norm="none",
        positions="learned", scale=1.0, bias=False, output_map=False, log_output=smoothing, read=read,
    ).double()  # fmt: skip
    token, copied, fetched = (torch.arange(states) + block * states for block in range(3))
    circle = 3 * states + torch.arange(2)
    step = math.pi / (2 * length)
    angle = step * torch.arange(length, dtype=torch.float64)
    back = torch.tensor([[math.cos(step), math.sin(step)], [-math.sin(step), math.cos(step)]], dtype=torch.float64)
    first, second = (cast(Any, layer).attention for layer in model.layers)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embedding.weight[token, token] = 1.0
        model.position.weight[:, circle] = torch.stack([angle.cos(), angle.sin()], -1)
        first.query.weight[:2, circle] = temperature / (1 - math.cos(step)) * back
        first.key.weight[:2, circle] = torch.eye(2, dtype=torch.float64)
        first.value.weight[copied, token] = 1.0
        second.query.weight[token, token] = temperature
        second.key.weight[token, copied] = 1.0
        second.value.weight[fetched, token] = 1.0
        model.unembed.weight[token, fetched] = 1.0
    return model
