"""The configurable transformer: one class for the variants the field uses."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import integer, require
from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models._parts.cache import KeyValueCache
from sandlab.models._parts.transformer_config import TransformerConfig
from sandlab.models.attention import Attention, Slot
from sandlab.models.base import Model, check_length, configured
from sandlab.models.layers import (
    Embedding,
    HookPoint,
    LayerNorm,
    Linear,
    Positions,
    RMSNorm,
    align,
    linear,
    module_list,
    one_hot,
)
from sandlab.registry import register

__all__ = ["MLPBlock", "Transformer", "TransformerConfig", "sinusoids"]

# A config that travels to another process, or into the key of a result, leads to the model that is built from it.
TransformerConfig.__module__ = __name__


def sinusoids(length: int, width: int) -> Float[Tensor, "length width"]:
    """sin(t / 10000^(2i/width)) and cos of the same, interleaved; float64 (Vaswani et al. 2017)."""
    speed = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(length).unsqueeze(-1) * speed
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[:, :width]


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
            config.width,
            heads,
            config.head_width or config.width // heads,
            config.length,
            kind=config.attention,
            positions=config.positions,
            causal=config.causal,
            window=config.window,
            scale=config.scale,
            bias=config.bias,
            dropout=config.attention_dropout,
            rotary_base=config.rotary_base,
            output_map=config.output_map,
            std=config.init_std,
        )
        self.attention_norm = _norm(config)
        self.resid_mid = HookPoint()
        self.has_mlp = config.mlp != "none"
        if self.has_mlp:
            hidden = config.mlp_width or 4 * config.width
            self.mlp = MLPBlock(
                config.width, hidden, config.mlp, bias=config.bias, std=config.init_std, gated=config.gated
            )
            if config.zero_mlp:
                nn.init.zeros_(self.mlp.down_proj.weight)
            self.mlp_norm = _norm(config) if config.norm in ("pre", "post") else HookPoint()
        self.resid_post = HookPoint()

    def forward(
        self, x: Float[Tensor, "*lead time width"], slot: Slot | None = None
    ) -> Float[Tensor, "*lead time width"]:
        attention = self.attention if slot is None else partial(self.attention, slot=slot)
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


@register("models")
class Transformer(Model):
    """Decoder or encoder transformer with chosen depth, heads, norms, positions, attention and feed-forward.

    Activations: `embed`, `layers.i.attention.{query,key,value,scores,pattern,z}`, `layers.i.attention`,
    `layers.i.resid_mid`, `layers.i.mlp.hidden`, `layers.i.mlp`, `layers.i.resid_post`, `ln_final`, `logits`.
    """

    carries_members = True
    config: TransformerConfig
    sinusoid: Tensor

    @configured(TransformerConfig)
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        if config.embedding == "learned":
            self.embedding = Embedding(config.vocab, config.token_width, std=_token_std(config))
        if config.positions == "learned":
            self.position = Positions(config.length, config.width, std=_embedding_std(config))
        if config.positions == "sinusoidal":
            self.register_buffer("sinusoid", sinusoids(config.length, config.width), persistent=False)
        if config.positions == "learned-linear":
            self.direction = nn.Parameter(torch.randn(config.width) * _token_std(config))
        self.embed = HookPoint()
        self.layers = module_list(
            Layer(config, heads, residual) for heads, residual in zip(config.heads_per_layer, config.residual_per_layer)
        )
        self.ln_final = _norm(config) if config.norm == "pre" else HookPoint()
        outputs = config.outputs or config.vocab
        if not config.tied:
            self.unembed = Linear(config.width, outputs, bias=False, std=config.init_std)
            if config.zero_readout:
                nn.init.zeros_(self.unembed.weight)
        if config.readout_bias:
            self.readout_bias = nn.Parameter(torch.zeros(outputs))
        self.logits = HookPoint()

    def forward(
        self, inputs: Int[Tensor, "*lead time"], cache: KeyValueCache | None = None
    ) -> Float[Tensor, "*lead time outputs"]:
        """Logits of every position (or the last). With a cache from `start_cache`, inputs continue its sequences."""
        if cache is not None:
            return self._continue(inputs, cache)
        check_length(inputs.shape[-1], self.config.length)
        x = self.embed_tokens(inputs)
        for _ in range(self.config.loops):
            for layer in self.layers:
                x = layer(x)
        if self.config.read == "last":
            x = x[..., -1:, :]
        return self.read_out(self.ln_final(x))

    def start_cache(self, batch: int, capacity: int | None = None) -> KeyValueCache:
        """An empty key-value cache for `batch` sequences of at most `capacity` tokens (default: the model's length).

        >>> cache = model.start_cache(batch=8)
        >>> logits = model(prompts, cache=cache)          # every row grows by the given tokens
        >>> cache.rollback(lengths)                       # and can be shortened, each row to its own length
        """
        require(self.config.causal, "causal", False, "True for a cache", "an encoder sees the tokens that follow")
        capacity = self.config.length if capacity is None else capacity
        integer("capacity", capacity, low=1, high=self.config.length, hint="build the model with a larger length")
        attentions = [layer.attention for layer in self.layers] * self.config.loops
        return KeyValueCache(integer("batch", batch, low=1), capacity, attentions)

    @torch.no_grad()
    def _continue(self, inputs: Int[Tensor, "batch new"], cache: KeyValueCache) -> Float[Tensor, "batch new outputs"]:
        slots = iter(cache.grow(inputs))
        x = self.embed_tokens(inputs, cache.positions)
        for _ in range(self.config.loops):
            for layer in self.layers:
                x = layer(x, next(slots))
        if self.config.read == "last":
            x = x[..., -1:, :]
        return self.read_out(self.ln_final(x))

    def embed_tokens(
        self, inputs: Int[Tensor, "*lead time"], positions: Int[Tensor, "*lead time"] | None = None
    ) -> Float[Tensor, "*lead time width"]:
        """Token vectors with the position codes that live in the residual stream (of 0, 1, 2, … unless given)."""
        config, time = self.config, inputs.shape[-1]
        if config.embedding == "one-hot":
            x = one_hot(inputs, config.vocab, self.dtype)
        else:
            x = self.embedding(inputs)
        if positions is None and config.position_shift and self.training:
            furthest = min(config.position_shift, config.length - time)
            positions = torch.randint(furthest + 1, (1,), device=x.device) + torch.arange(time, device=x.device)
        x = self._add_positions(x, positions)
        if config.embedding_dropout and self.training:
            x = F.dropout(x, config.embedding_dropout)
        return self.embed(x)

    def _add_positions(self, x: Tensor, positions: Tensor | None) -> Tensor:
        config, time = self.config, x.shape[-2]
        rows = slice(0, time) if positions is None else positions
        if config.positions == "learned":
            return x + (align(self.position(time), x, 2) if positions is None else self.position.weight[positions])
        if config.positions == "sinusoidal":
            return x + self.sinusoid[rows].to(x.dtype)
        if config.positions == "one-hot":
            hot = torch.eye(config.length, dtype=x.dtype, device=x.device)[rows]
            return torch.cat([x, hot.expand(*x.shape[:-1], config.length)], -1)
        if config.position_slope is not None:
            steps = torch.arange(time, device=x.device) if positions is None else positions
            return x + config.position_slope * steps.unsqueeze(-1).to(x.dtype) * self._direction(x)
        return x

    def _direction(self, x: Tensor) -> Tensor:
        """The direction of linear codes: alternating signs at unit length, or learned."""
        if self.config.positions == "learned-linear":
            return align(self.direction, x, 1)
        signs = 1 - 2 * (torch.arange(self.config.width, device=x.device) % 2)
        return signs.to(x.dtype) * self.config.width**-0.5

    def embedding_tables(self) -> tuple[Float[Tensor, "vocab width"], Float[Tensor, "length width"]]:
        """A vector for each token and one for each position, whose sum is what the model embeds."""
        config = self.config
        one_hot_tokens = torch.eye(config.vocab, dtype=self.dtype, device=self.device)
        tokens = self.embedding.weight if config.embedding == "learned" else one_hot_tokens
        nothing = tokens.new_zeros(config.length, config.token_width)
        return F.pad(tokens, (0, config.width - config.token_width)), self._add_positions(nothing, None)

    def read_out(self, x: Float[Tensor, "*lead width"]) -> Float[Tensor, "*lead outputs"]:
        logits = linear(x, self.embedding.weight) if self.config.tied else self.unembed(x)
        if self.config.readout_bias:
            logits = logits + align(self.readout_bias, logits, 1)
        if self.config.log_output is not None:
            logits = (logits.abs() + self.config.log_output).log()
        return self.logits(logits)


def _embedding_std(config: TransformerConfig) -> float:
    return 1 / math.sqrt(config.width) if config.init_std is None else config.init_std


def _token_std(config: TransformerConfig) -> float:
    return _embedding_std(config) if config.token_std is None else config.token_std


def _norm(config: TransformerConfig) -> HookPoint | LayerNorm | RMSNorm:
    if config.norm == "none":
        return HookPoint()
    if config.norm_kind == "rms":
        return RMSNorm(config.width, eps=1e-6 if config.norm_eps is None else config.norm_eps)
    return LayerNorm(config.width, bias=config.bias, eps=1e-5 if config.norm_eps is None else config.norm_eps)
