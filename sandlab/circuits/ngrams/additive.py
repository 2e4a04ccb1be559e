"""Counting estimators as weights of an ordinary transformer with addition and a logarithm at the end."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer, number, require
from sandlab.models.transformer import Transformer
from sandlab.random import rng as seeded_rng
from sandlab.registry import register

__all__ = ["additive_ngram_estimator"]


@register("circuits")
def additive_ngram_estimator(
    states: int,
    order: int,
    length: int,
    *,
    temperature: float = 40.0,
    smoothing: float = 1e-3,
    rotation: int | None = None,
    read: str = "last",
) -> Transformer:
    """The order-k counting estimator in a two-layer transformer whose layers add to the residual stream.

    Mutually orthogonal token vectors s_j and position vectors p_i; x₀[i] = s⁰_{x_i} + p_i. Head h of layer 1 has
    QᵀK = c Σ_l p_l p_{max(l−h, 0)}ᵀ and V = Σ_j s_jʰ (s_j⁰)ᵀ: it adds the token h positions back in a block of its own.
    Layer 2 has QᵀK = c Σ_h Σ_j s_j^{h−1} (s_jʰ)ᵀ, V = Σ_j e_j (s_j⁰)ᵀ and no residual; then log(|x| + ε) and softmax.

    Output (p̂ + ε)/(1 + Sε) with p̂ the clamped estimator of order k: the ε inside the logarithm is an additive smoothing
    constant. `rotation` is the seed of a random orthogonal matrix applied to the whole stream (None: the vectors are
    coordinate axes); the function computed is the same.

    Source: Varre, Yüce and Flammarion 2025, Appendix F.1, equations (32)–(35) (printed with the positions transposed).
    """
    integer("states", states, low=1)
    integer("order", order, low=0)
    integer("length", length, low=1)
    number("temperature", temperature, low=0.0)
    require(number("smoothing", smoothing) > 0, "smoothing", smoothing, "above 0", "it stands inside a logarithm")
    blocks = max(order, 1)
    width = states + length + blocks * states
    model = Transformer(
        vocab=states, length=length, layers=2, heads=(blocks, 1), width=width, head_width=max(length, blocks * states),
        mlp="none", norm="none", positions="learned", embedding="learned", scale=1.0, bias=False, output_map=False,
        residual=(True, False), log_output=smoothing, read=read,
    ).double()  # fmt: skip
    turn = _orthogonal(width, rotation)
    root = math.sqrt(temperature)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        place = torch.arange(length)
        model.embedding.weight.copy_(turn[:states])
        model.position.weight.copy_(turn[states : states + length])
        model.unembed.weight.copy_(turn[:states])
        first, second = (_Maps(layer, turn) for layer in model.layers)
        for h in range(1, order + 1):
            token = torch.arange(states)
            block = states + length + (h - 1) * states
            before = 0 if h == 1 else block - states
            first.query(h - 1, place, states + place, root)
            first.key(h - 1, place, states + (place - h).clamp(min=0), root)
            first.value(h - 1, block + token, token)
            second.query(0, (h - 1) * states + token, before + token, root)
            second.key(0, (h - 1) * states + token, block + token, root)
        second.value(0, torch.arange(states), torch.arange(states))
    return model


class _Maps:
    """Writes entries of a layer's maps in the unrotated coordinates of the stream."""

    def __init__(self, layer: Any, turn: Float[Tensor, "width width"]) -> None:
        self.attention, self.turn = layer.attention, turn

    def query(self, head: int, rows: Tensor, columns: Tensor, value: float) -> None:
        self._read(self.attention.query.weight, head, rows, columns, value)

    def key(self, head: int, rows: Tensor, columns: Tensor, value: float) -> None:
        self._read(self.attention.key.weight, head, rows, columns, value)

    def value(self, head: int, rows: Tensor, columns: Tensor) -> None:
        """Stream coordinate `columns` is written to stream coordinate `rows`."""
        width = len(self.turn)
        part = self.attention.value.weight[head * width : (head + 1) * width]
        part += self.turn[rows].T @ self.turn[columns]

    def _read(self, weight: Tensor, head: int, rows: Tensor, columns: Tensor, value: float) -> None:
        inner = self.attention.head_width
        part = weight[head * inner : (head + 1) * inner]
        part[rows] += value * self.turn[columns]


def _orthogonal(width: int, seed: int | None) -> Float[Tensor, "width width"]:
    """Rows are the coordinate axes, or a random orthonormal basis."""
    if seed is None:
        return torch.eye(width, dtype=torch.float64)
    gaussian = torch.randn(width, width, dtype=torch.float64, generator=seeded_rng(seed, "basis"))
    return torch.linalg.qr(gaussian).Q
