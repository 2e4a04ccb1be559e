"""One layer of the transformer: attention and feed-forward block, each with its norm."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models.attention import Attention, Slot
from sandlab.models.layers import HookPoint, LayerNorm, Linear, RMSNorm

if TYPE_CHECKING:
    from sandlab.models.transformer import TransformerConfig

__all__ = ["Layer", "MLPBlock", "norm_of"]


class MLPBlock(nn.Module):
    """W₂ φ(W₁ x + b₁) + b₂; gated: W₂ [φ(W₁ x + b₁) ⊙ (W_g x + b_g)] + b₂ (Shazeer 2020)."""

    def __init__(
        self, width: int, hidden: int, activation: str, *, bias: bool, std: float | None, gated: bool = False
    ) -> None:
        super().__init__()
        self.up_proj = Linear(width, hidden, bias=bias, std=std)
        self.gate_proj = Linear(width, hidden, bias=bias, std=std) if gated else None
        self.hidden = HookPoint()
        self.down_proj = Linear(hidden, width, bias=bias, std=std)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        hidden = ACTIVATIONS[self.activation](self.up_proj(x))
        return self.down_proj(self.hidden(hidden if self.gate_proj is None else hidden * self.gate_proj(x)))


class Layer(nn.Module):
    """Attention, then feed-forward, each on its own branch of the residual stream."""

    def __init__(self, config: TransformerConfig, heads: int, residual: bool) -> None:
        super().__init__()
        self.config, self.residual = config, residual
        self.attention = Attention(
            config.width, heads, config.head_width or config.width // heads, config.length,
            kind=config.attention, positions=config.positions, causal=config.causal, window=config.window,
            scale=config.scale, bias=config.bias, dropout=config.attention_dropout, rotary_base=config.rotary_base,
            output_map=config.output_map, average=config.average_heads, std=config.init_std,
        )  # fmt: skip
        self.attention_norm = norm_of(config)
        self.resid_mid = HookPoint()
        self.has_mlp = config.mlp != "none"
        if self.has_mlp:
            hidden = config.mlp_width or 4 * config.width
            self.mlp = MLPBlock(
                config.width, hidden, config.mlp, bias=config.bias, std=config.init_std, gated=config.gated
            )
            if config.zero_mlp:
                nn.init.zeros_(self.mlp.down_proj.weight)
            self.mlp_norm = norm_of(config) if config.norm in ("pre", "post") else HookPoint()
        self.resid_post = HookPoint()

    def forward(
        self, x: Float[Tensor, "*lead time width"], slot: Slot | None = None, hidden: Tensor | None = None
    ) -> Float[Tensor, "*lead time width"]:
        plain = slot is None and hidden is None
        attention = self.attention if plain else partial(self.attention, slot=slot, hidden=hidden)
        x = self.resid_mid(self._branch(x, attention, self.attention_norm))
        if self.has_mlp:
            x = self._branch(x, self._feed_forward, self.mlp_norm)
        return self.resid_post(x)

    def _feed_forward(self, x: Tensor) -> Tensor:
        x, rate = self.mlp(x), self.config.mlp_dropout
        return F.dropout(x, rate) if rate and self.training else x

    def _branch(self, x: Tensor, block: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        where = self.config.norm
        added = block(norm(x) if where in ("pre", "none") else x)
        if where == "attention-branch":
            added = norm(added)
        if self.config.dropout and self.training:
            added = F.dropout(added, self.config.dropout)
        x = x + added if self.residual else added
        return norm(x) if where in ("post", "attention-post") else x


def norm_of(config: TransformerConfig) -> HookPoint | LayerNorm | RMSNorm:
    if config.norm == "none":
        return HookPoint()
    if config.norm_kind == "rms":
        return RMSNorm(config.width, eps=1e-6 if config.norm_eps is None else config.norm_eps)
    return LayerNorm(config.width, bias=config.bias, eps=1e-5 if config.norm_eps is None else config.norm_eps)
