"""The configurable transformer: one class for the variants the field uses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, integer, require
from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models._parts.cache import KeyValueCache
from sandlab.models._parts.transformer_layer import Layer, MLPBlock, norm_of
from sandlab.models.base import Config, Model, check_length, configured
from sandlab.models.layers import Embedding, HookPoint, Linear, Positions, align, linear, module_list, one_hot
from sandlab.registry import register

__all__ = ["MLPBlock", "Transformer", "TransformerConfig", "sinusoids"]

POSITIONS = (
    "none", "learned", "sinusoidal", "rotary", "relative", "alibi", "one-hot", "linear", "learned-linear"
)  # fmt: skip
NORMS = ("none", "pre", "post", "attention-post", "attention-branch")


@dataclass(frozen=True)
class TransformerConfig(Config):
    """Options of the transformer.

    vocab, length      number of input tokens; largest number of positions
    layers, loops      number of layers; how often the whole stack is applied, with the same weights
    heads              heads per layer: one number, or one for each layer
    width              coordinates of the residual stream; head_width defaults to width / heads, mlp_width to 4 · width
    outputs            classes of the readout (default: vocab)
    causal             False: an encoder, in which positions see what follows them
    mlp                activation of the feed-forward block, or "none" for an attention-only model
    gated              a linear gate multiplies the hidden units of the feed-forward block
    norm               "pre": x + f(LN x); "post": LN(x + f x); "none"; or around attention only (Wen et al. 2023):
                       "attention-post" LN(x + A x), "attention-branch" x + LN(A x)
    norm_kind          "layer" or "rms"; norm_eps is its ε (default 1e-5, for rms 1e-6)
    positions          "none", "learned", "sinusoidal", "rotary", "relative", "alibi", "one-hot" (appended to the
                       token), "linear": position_slope · t · d with d = (+1, −1, +1, …)/√width (a direction that layer
                       norm does not remove), "learned-linear": position_slope · t times a learned direction
    position_slope     the factor of t in the two linear codes: given with them, and only with them
    position_shift     while training, one number drawn uniformly from 0 … position_shift is added to all positions of a
                       batch, which shows the model positions beyond its training length (Liu et al. 2023, §5)
    token_std          standard deviation of the initial token vectors (None: as init_std says); coordinates of
                       sinusoids have size 1, next to which tokens of size 1/√width are faint
    embedding          "learned" or "one-hot"
    attention          "softmax", "linear" or "hard" (uniform over the largest scores)
    scale              factor of the scores (default 1/√head_width); window: how many keys back a query sees
    tied               the readout is the embedding table
    bias, readout_bias biases of all maps inside and of the norms; of the readout
    residual           add each branch to the stream, or replace the stream by it: one answer, or one for each layer
    output_map         False: no output map; each head's values are as wide as the stream and the heads are summed
    dropout            rate on the residual branches; attention_dropout on the patterns, mlp_dropout on the output of
                       the feed-forward block alone, embedding_dropout on the embeddings
    rotary_base        b of the rotary angles t · b^(−2i/head_width)
    init_std           standard deviation of every drawn weight (None: 1/√inputs)
    zero_readout       start the readout at zero; zero_mlp the last map of each feed-forward block
    log_output         ε: the output is log(|z| + ε) of the readout z (None: z itself)
    read               "all" positions, or only the "last" (logits then have a time axis of 1)
    hidden_keys        inputs from vocab to 2 · vocab − 1 are the tokens 0 … vocab − 1 again, but no position attends to
                       them: padding, and tokens that are taken out of the context without moving the others
    embedding_norm     normalise the embeddings; masked_head: before the readout LN(φ(W x + b)), both as in BERT
    average_heads      the heads' outputs are averaged instead of concatenated
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
    mlp_dropout: float = 0.0
    embedding_dropout: float = 0.0
    rotary_base: float = 10000.0
    init_std: float | None = 0.02
    zero_readout: bool = False
    zero_mlp: bool = False
    log_output: float | None = None
    read: str = "all"
    hidden_keys: bool = False
    embedding_norm: bool = False
    masked_head: bool = False
    average_heads: bool = False

    def __post_init__(self) -> None:
        self.check_integers("vocab", "length", "width", "loops", "head_width", "mlp_width", "outputs", "window")
        self.check_integers("layers", "position_shift", low=0)
        self.check_numbers("dropout", "attention_dropout", "mlp_dropout", "embedding_dropout", low=0.0, high=1.0)
        self.check_numbers("init_std", "log_output", "norm_eps", "position_slope", "token_std", low=0.0)
        self.check_numbers("scale", "rotary_base")
        require(self.rotary_base > 0, "rotary_base", self.rotary_base, "above 0")
        choice("mlp", self.mlp, (*ACTIVATIONS, "none"))
        choice("norm", self.norm, NORMS)
        choice("norm_kind", self.norm_kind, ("layer", "rms"))
        choice("positions", self.positions, POSITIONS)
        choice("embedding", self.embedding, ("learned", "one-hot"))
        choice("read", self.read, ("all", "last"))
        choice("attention", self.attention, ("softmax", "linear", "hard"))
        require(not self.masked_head or self.mlp != "none", "masked_head", True, "False without an activation")
        require(not self.average_heads or self.output_map, "average_heads", True, "False without an output map")
        self._check_positions()
        self._check_layers()
        self._check_widths()

    def _check_positions(self) -> None:
        """A slope belongs to linear codes, a shift to codes that continue beyond the training length."""
        linear = self.positions in ("linear", "learned-linear")
        both = linear == (self.position_slope is not None)
        require(both, "position_slope", self.position_slope, "given with linear positions, and only with them")
        if linear or self.token_std is not None:
            require(self.embedding == "learned", "embedding", self.embedding, "'learned' here")
        if self.position_shift:
            codes = linear or self.positions in ("sinusoidal", "one-hot")
            hint = "take positions='sinusoidal'"
            require(codes, "position_shift", self.position_shift, "0 without codes to shift", hint)

    def _check_layers(self) -> None:
        """What may be given once or for each layer."""
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
        for heads in self.heads_per_layer if self.head_width is None else ():
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
        if config.embedding_norm:
            self.embedding_norm = norm_of(config)
        self.embed = HookPoint()
        self.layers = module_list(
            Layer(config, heads, residual) for heads, residual in zip(config.heads_per_layer, config.residual_per_layer)
        )
        self.ln_final = norm_of(config) if config.norm == "pre" else HookPoint()
        outputs = config.outputs or config.vocab
        if config.masked_head:
            self.head = Linear(config.width, config.width, std=config.init_std)
            self.head_norm = norm_of(config)
        if not config.tied:
            self.unembed = Linear(config.width, outputs, bias=False, std=config.init_std)
            if config.zero_readout:
                nn.init.zeros_(self.unembed.weight)
        if config.readout_bias:
            self.readout_bias = nn.Parameter(torch.zeros(outputs))
        self.logits = HookPoint()

    def forward(
        self, inputs: Int[Tensor, "*lead time"], cache: KeyValueCache | None = None
    ) -> Float[Tensor, "*lead read outputs"]:
        """Logits of every position (or the last). With a cache from `start_cache`, inputs continue its sequences."""
        if cache is not None:
            return self._continue(inputs, cache)
        check_length(inputs.shape[-1], self.config.length)
        hidden = inputs >= self.config.vocab if self.config.hidden_keys else None
        x = self.embed_tokens(inputs if hidden is None else inputs % self.config.vocab)
        for _ in range(self.config.loops):
            for layer in self.layers:
                x = layer(x, hidden=hidden)
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
    def _continue(self, inputs: Int[Tensor, "batch new"], cache: KeyValueCache) -> Float[Tensor, "batch read outputs"]:
        slots = iter(cache.grow(inputs))
        x = self.embed_tokens(inputs, cache.positions)
        for _ in range(self.config.loops):
            for layer in self.layers:
                x = layer(x, next(slots))
        if self.config.read == "last":
            x = x[..., -1:, :]
        return self.read_out(self.ln_final(x))

    def embed_tokens(
        self, inputs: Int[Tensor, "*lead time"], positions: Int[Tensor, "*#lead time"] | None = None
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
        if config.embedding_norm:
            x = self.embedding_norm(x)
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
        if self.config.masked_head:
            x = self.head_norm(ACTIVATIONS[self.config.mlp](self.head(x)))
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
