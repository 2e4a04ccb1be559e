"""The configurable transformer: one class for the variants the field uses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, integer, number, require
from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models._parts.cache import KeyValueCache
from sandlab.models.attention import Attention, Slot
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import Embedding, HookPoint, LayerNorm, Linear, Positions, RMSNorm, against, linear, one_hot
from sandlab.registry import register

__all__ = ["MLPBlock", "Transformer", "TransformerConfig", "sinusoids"]

POSITIONS = (
    "none", "learned", "sinusoidal", "rotary", "relative", "alibi", "one-hot", "linear", "learned-linear"
)  # fmt: skip
NORMS = ("none", "pre", "post", "attention-post", "attention-branch")


@dataclass(frozen=True)
class TransformerConfig(Config):
    """Options of the transformer.

    vocab, length   input alphabet; largest number of positions
    layers, heads   number of layers; heads per layer, one number or one per layer
    width           of the residual stream; head_width defaults to width / heads, mlp_width to 4 · width
    outputs         classes of the readout (default: vocab)
    mlp             activation of the feed-forward block, or "none" for an attention-only model; gated: a linear gate
                    multiplies its hidden units
    norm            "pre": x + f(LN x); "post": LN(x + f x); "none"; for attention alone, with nothing around the
                    feed-forward block: "attention-post" LN(x + A x), "attention-branch" x + LN(A x) (Wen et al. 2023)
    norm_kind       "layer" or "rms"; norm_eps its ε (default 1e-5, rms 1e-6)
    positions       "none", "learned", "sinusoidal", "rotary", "relative", "alibi", "one-hot" (appended to the token),
                    "linear": position_slope · t · d with d = (+1, −1, +1, …)/√width (a direction that layer norm
                    does not remove), "learned-linear": position_slope · t times a learned direction
    position_shift  while training, one number drawn uniformly from 0 … position_shift is added to all positions of a
                    batch, which shows the model positions beyond its training length (Liu et al. 2023, §5)
    token_std       standard deviation of the initial token vectors (None: as init_std says). Sinusoids have
                    coordinates of size 1: beside them tokens of size 1/√width are faint
    embedding       "learned" or "one-hot"; dropout rates: residual branches, attention weights, embeddings
    attention       "softmax", "linear" or "hard"; scale of the scores (default 1/√head_width); window: keys in reach
    tied            the readout is the embedding table; loops: how often the stack is applied with the same weights
    output_map      False: no output map; each head's values are as wide as the stream and the heads are added up
    residual        add the branch to the stream, or put it in its place; one answer, or one per layer
    init_std        standard deviation of every drawn weight (None: 1/√inputs); zero_readout starts the readout at zero,
                    zero_mlp the last map of each feed-forward block
    log_output      ε: the output is log(|z| + ε) of the readout z (None: z itself)
    read            "all" positions, or only the "last" (logits then have a time axis of 1)
    """

    vocab: int
    length: int
    layers: int = 2
    heads: int | tuple[int, ...] = 1
    width: int = 64
    head_width: int | None = None
    mlp_width: int | None = None
    outputs: int | None = None
    causal: bool = True
    mlp: str = "gelu"
    gated: bool = False
    norm: str = "pre"
    norm_kind: str = "layer"
    norm_eps: float | None = None
    positions: str = "learned"
    position_slope: float | None = None
    position_shift: int = 0
    token_std: float | None = None
    embedding: str = "learned"
    attention: str = "softmax"
    scale: float | None = None
    window: int | None = None
    tied: bool = False
    bias: bool = True
    readout_bias: bool = False
    residual: bool | tuple[bool, ...] = True
    output_map: bool = True
    loops: int = 1
    dropout: float = 0.0
    attention_dropout: float = 0.0
    embedding_dropout: float = 0.0
    rotary_base: float = 10000.0
    init_std: float | None = 0.02
    zero_readout: bool = False
    zero_mlp: bool = False
    log_output: float | None = None
    read: str = "all"

    def __post_init__(self) -> None:
        for name in ("vocab", "length", "width", "loops"):
            integer(name, getattr(self, name), low=1)
        integer("layers", self.layers, low=0)
        for name in ("head_width", "mlp_width", "outputs", "window"):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), low=1)
        for name in ("dropout", "attention_dropout", "embedding_dropout"):
            number(name, getattr(self, name), low=0.0, high=1.0)
        for name in ("init_std", "log_output", "norm_eps", "position_slope", "token_std"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name), low=0.0)
        if self.scale is not None:
            number("scale", self.scale)
        require(number("rotary_base", self.rotary_base) > 0, "rotary_base", self.rotary_base, "above 0")
        choice("mlp", self.mlp, (*ACTIVATIONS, "none"))
        choice("norm", self.norm, NORMS)
        choice("norm_kind", self.norm_kind, ("layer", "rms"))
        choice("positions", self.positions, POSITIONS)
        choice("embedding", self.embedding, ("learned", "one-hot"))
        choice("read", self.read, ("all", "last"))
        choice("attention", self.attention, ("softmax", "linear", "hard"))
        self._check_positions()
        self._check_layers()
        self._check_widths()

    def _check_positions(self) -> None:
        """A slope belongs to linear codes, a shift to codes that continue beyond the training length."""
        linear = self.positions in ("linear", "learned-linear")
        if linear or self.position_slope is not None:
            require(linear == (self.position_slope is not None), "position_slope", self.position_slope,
                    "given with linear positions, and only with them")  # fmt: skip
        if linear or self.token_std is not None:
            require(self.embedding == "learned", "embedding", self.embedding, "'learned' here")
        if integer("position_shift", self.position_shift, low=0):
            codes = linear or self.positions in ("sinusoidal", "one-hot")
            hint = "take positions='sinusoidal'"
            require(codes, "position_shift", self.position_shift, "0 without codes to shift", hint)

    def _check_layers(self) -> None:
        """What may be given once or per layer."""
        for name in ("heads", "residual"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        single = isinstance(self.heads, (int, tuple))
        require(single, "heads", self.heads, "a whole number, or one per layer")
        for heads in self.heads_per_layer:
            integer("heads", heads, low=1)
        require(len(self.heads_per_layer) == self.layers, "heads", self.heads, f"one number or {self.layers} of them")
        single = isinstance(self.residual, bool)
        one_each = single or (isinstance(self.residual, tuple) and len(self.residual) == self.layers)
        require(one_each, "residual", self.residual, f"True, False or {self.layers} of them")

    def _check_widths(self) -> None:
        """Heads, one-hot vectors and the tied readout must fit into the stream."""
        if self.head_width is None:
            for heads in self.heads_per_layer:
                fits = self.width % heads == 0
                require(fits, "width", self.width, f"a multiple of heads ({heads})", "or give head_width")
        token_width = self.token_width
        require(token_width >= 1, "width", self.width, f"above length ({self.length}) with one-hot positions")
        if self.embedding == "one-hot":
            needed = self.vocab + self.width - token_width
            hint = "one-hot tokens take vocab coordinates, one-hot positions length more"
            require(token_width == self.vocab, "width", self.width, f"{needed} with one-hot tokens", hint)
        if self.tied:
            same = self.outputs in (None, self.vocab) and token_width == self.width and self.embedding == "learned"
            require(same, "tied", True, "False unless outputs equals vocab and nothing is one-hot")

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        return (self.heads,) * self.layers if isinstance(self.heads, int) else self.heads

    @property
    def residual_per_layer(self) -> tuple[bool, ...]:
        return (self.residual,) * self.layers if isinstance(self.residual, bool) else self.residual

    @property
    def token_width(self) -> int:
        """Coordinates that hold the token: one-hot positions take `length` of the width."""
        return self.width - self.length if self.positions == "one-hot" else self.width


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
            x = self._branch(x, self.mlp, self.mlp_norm)
        return self.resid_post(x)

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
        self.layers = nn.ModuleList(
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
        time = inputs.shape[-1]
        longest = self.config.length
        require(
            1 <= time <= longest, "sequence length", time, f"1 to {longest}", "build the model with a larger length"
        )
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
        >>> cache.rollback(lengths)                       # and can be shortened again, each to its own length
        """
        require(self.config.causal, "causal", False, "True for a cache", "an encoder sees the tokens that are to come")
        capacity = self.config.length if capacity is None else capacity
        integer("capacity", capacity, low=1, high=self.config.length, hint="build the model with a larger length")
        attentions = [cast(Layer, layer).attention for layer in self.layers] * self.config.loops
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
        """Tokens and, for the kinds that live in the residual stream, positions: 0, 1, 2, … unless given."""
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
            return x + (against(self.position(time), x, 2) if positions is None else self.position.weight[positions])
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
        """The unit direction of linear codes: alternating signs, or learned."""
        if self.config.positions == "learned-linear":
            return against(self.direction, x, 1)
        signs = 1 - 2 * (torch.arange(self.config.width, device=x.device) % 2)
        return signs.to(x.dtype) * self.config.width**-0.5

    def read_out(self, x: Float[Tensor, "*lead width"]) -> Float[Tensor, "*lead outputs"]:
        logits = linear(x, self.embedding.weight) if self.config.tied else self.unembed(x)
        if self.config.readout_bias:
            logits = logits + against(self.readout_bias, logits, 1)
        if self.config.log_output is not None:
            logits = (logits.abs() + self.config.log_output).log()
        return self.logits(logits)


def _embedding_std(config: TransformerConfig) -> float:
    return 1 / math.sqrt(config.width) if config.init_std is None else config.init_std


def _token_std(config: TransformerConfig) -> float:
    return _embedding_std(config) if config.token_std is None else config.token_std


def _norm(config: TransformerConfig) -> nn.Module:
    if config.norm == "none":
        return HookPoint()
    if config.norm_kind == "rms":
        return RMSNorm(config.width, eps=1e-6 if config.norm_eps is None else config.norm_eps)
    return LayerNorm(config.width, bias=config.bias, eps=1e-5 if config.norm_eps is None else config.norm_eps)
