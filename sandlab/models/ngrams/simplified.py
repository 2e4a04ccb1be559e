"""The two-layer simplified transformer: its first layer attends by position only, its output is a distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, integer, require
from sandlab.models.attention import attention_pattern, causal_mask
from sandlab.models.base import Config, Model, check_length, configured
from sandlab.models.layers import HookPoint, Linear, contract, one_hot
from sandlab.registry import register

__all__ = ["SimplifiedTransformer", "SimplifiedTransformerConfig"]


@dataclass(frozen=True)
class SimplifiedTransformerConfig(Config):
    """Options of the simplified transformer.

    vocab, length   alphabet size S; largest number of positions T
    heads           m, heads of the first layer (an order-k task needs at least k of them)
    value           train V₁ of every head; False: V₁ is the identity
    merged          one matrix A₂ instead of Q₂ᵀK₂
    query_skip      the query of layer 2 sees block 0 (the token itself); False: it sees only what the heads copied
    mask_self       in layer 2 a position does not attend to itself (the first position, which has no other, does)
    boundary        "clamp": the sequence starts with its first token; "bos": a reserved token precedes it, with one
                    more coordinate (d = S + 1), which is a key of layer 1 and never of layer 2
    head_ratio      d_h = ratio · (m + 1) · d, rows of Q₂ and K₂
    init_scale      factor of the initial Q₂ and K₂ (of A₂ when merged)
    floor           the output is log(p + floor)
    read            "last" position only (logits have a time axis of 1), or "all"
    """

    vocab: int
    length: int
    heads: int = 2
    value: bool = True
    merged: bool = False
    query_skip: bool = True
    mask_self: bool = False
    boundary: str = "clamp"
    head_ratio: float = 1.0
    init_scale: float = 1.0
    floor: float = 1e-8
    read: str = "last"

    def __post_init__(self) -> None:
        self.check_integers("vocab", "length")
        self.check_numbers("floor", "init_scale", "head_ratio", low=0.0)
        integer("heads", self.heads, low=0, hint="0 heads leave the unigram and the skip connection")
        require(self.query_skip or self.heads > 0, "query_skip", False, "True with 0 heads", "the query would be empty")
        choice("boundary", self.boundary, ("clamp", "bos"))
        choice("read", self.read, ("last", "all"))
        require(self.head_width >= 1, "head_ratio", self.head_ratio, f"at least {1 / self.stream_width:.3g}")

    @property
    def token_width(self) -> int:
        """d, coordinates of one block: S, and one more for the reserved token."""
        return self.vocab + (self.boundary == "bos")

    @property
    def stream_width(self) -> int:
        """D = (m + 1) · d: the token, then what each head copied."""
        return (self.heads + 1) * self.token_width

    @property
    def positions(self) -> int:
        """Rows of A₁: T, and one more for the reserved token."""
        return self.length + (self.boundary == "bos")

    @property
    def head_width(self) -> int:
        return round(self.stream_width * self.head_ratio)


class PositionalHeads(nn.Module):
    """r₁^(h) = σ(A₁^(h)) r₀ V₁^(h)ᵀ for every head: attention that depends on the positions alone."""

    def __init__(self, heads: int, positions: int, width: int, value: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(heads, positions, positions))
        self.value = nn.Parameter(torch.randn(heads, width, width) / math.sqrt(width)) if value else None
        self.scores, self.pattern, self.z = HookPoint(), HookPoint(), HookPoint()

    def forward(self, x: Float[Tensor, "*lead time width"]) -> Float[Tensor, "*lead time copied"]:
        time = x.shape[-2]
        # A batch axis of 1: the pattern is the same for every example.
        scores = self.scores(self.weight[..., :time, :time].unsqueeze(-4))
        pattern = self.pattern(attention_pattern(scores, causal_mask(scores)))
        z = self.z(contract("jd,hij->ihd", x, pattern.squeeze(-4)))
        return (z if self.value is None else contract("ihd,hed->ihe", z, self.value)).flatten(-2)


class MatchingHead(nn.Module):
    """σ(r₁ Q₂ᵀ K₂ r₁ᵀ) r₀: one head, no residual, whose values are the tokens."""

    def __init__(self, config: SimplifiedTransformerConfig) -> None:
        super().__init__()
        width, std = config.stream_width, config.init_scale / math.sqrt(config.stream_width)
        self.query = Linear(width, width if config.merged else config.head_width, bias=False, std=std)
        self.key = HookPoint() if config.merged else Linear(width, config.head_width, bias=False, std=std)
        self.scores, self.pattern, self.z = HookPoint(), HookPoint(), HookPoint()

    def forward(self, queries: Tensor, keys: Tensor, tokens: Tensor, mask: Bool[Tensor, "query key"]) -> Tensor:
        scores = self.scores((self.query(queries) @ self.key(keys).mT).unsqueeze(-3))
        pattern = self.pattern(attention_pattern(scores, mask))
        return self.z(pattern.squeeze(-3) @ tokens)


class FirstLayer(nn.Module):
    """The positional heads and the stream r₁ = [r₀, r₁^(1), …, r₁^(m)]."""

    def __init__(self, config: SimplifiedTransformerConfig) -> None:
        super().__init__()
        self.attention = PositionalHeads(config.heads, config.positions, config.token_width, config.value)
        self.resid_post = HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        return self.resid_post(torch.cat([x, self.attention(x)], -1))


class SecondLayer(nn.Module):
    """The matching head."""

    def __init__(self, config: SimplifiedTransformerConfig) -> None:
        super().__init__()
        self.attention = MatchingHead(config)

    def forward(self, queries: Tensor, keys: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        return self.attention(queries, keys, tokens, mask)


@register("models")
class SimplifiedTransformer(Model):
    """Two-layer simplified disentangled transformer for in-context n-grams; its output is already a distribution.

    With one-hot tokens r₀ and causal softmax σ:

        r₁ = [r₀, σ(A₁^(1)) r₀ V₁^(1)ᵀ, …, σ(A₁^(m)) r₀ V₁^(m)ᵀ]      A₁^(h) free, T × T
        p  = σ(r₁ Q₂ᵀ K₂ r₁ᵀ) r₀                                     no residual, no softmax at the end

    so p is a convex combination of the tokens seen; `forward` returns log(p + floor). Start: A₁ = 0 (uniform
    attention), V₁ ~ N(0, 1/d), Q₂, K₂ ~ N(0, 1/D) · init_scale with d = S and D = (m + 1) d.

    Parameters: `layers.0.attention.weight` (A₁: head, T, T), `layers.0.attention.value` (V₁: head, d, d),
    `layers.1.attention.query.weight` (Q₂: d_h, D) and `layers.1.attention.key.weight` (K₂: d_h, D); when merged the
    score is (A₂ r₁[query]) · r₁[key] with A₂ = `layers.1.attention.query.weight`.
    Activations: `embed` (r₀), `layers.0.attention.{scores,pattern}` (1, head, query, key), `.z` (batch, time,
    head, d: before V₁), `layers.0.resid_post` (r₁), `layers.1.attention.{query,key}`, `.{scores,pattern}` (batch, 1,
    query, key), `.z` (p, with the reserved token's coordinate), `logits`. With "bos" every time axis begins with the
    reserved token, except those of the logits and of layer 2's queries.

    Source: Varre, Yüce and Flammarion 2025, "Learning in-context n-grams with transformers", §2.3.
    """

    carries_members = True
    config: SimplifiedTransformerConfig

    @configured(SimplifiedTransformerConfig)
    def __init__(self, config: SimplifiedTransformerConfig) -> None:
        super().__init__(config)
        self.embed = HookPoint()
        self.layers = nn.ModuleList([FirstLayer(config), SecondLayer(config)])
        self.logits = HookPoint()

    @property
    def positional(self) -> PositionalHeads:
        """The heads of the first layer."""
        first = self.layers[0]
        assert isinstance(first, FirstLayer)
        return first.attention

    @property
    def matching(self) -> MatchingHead:
        """The head of the second layer."""
        second = self.layers[1]
        assert isinstance(second, SecondLayer)
        return second.attention

    def forward(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead read vocab"]:
        config, time = self.config, inputs.shape[-1]
        check_length(time, config.length)
        first, second = self.layers
        tokens = self.embed(self._embed(inputs))
        stream = first(tokens)
        queries = stream[..., -1:, :] if config.read == "last" else stream[..., -time:, :]
        if not config.query_skip:
            queries = F.pad(queries[..., config.token_width :], (config.token_width, 0))
        probs = second(queries, stream, tokens, self._mask(time, tokens))[..., : config.vocab]
        return self.logits((probs + config.floor).log())

    def _embed(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead positions width"]:
        if self.config.boundary == "bos":
            inputs = F.pad(inputs, (1, 0), value=self.config.vocab)
        return one_hot(inputs, self.config.token_width, self.dtype)

    def _mask(self, time: int, tokens: Tensor) -> Bool[Tensor, "query key"]:
        """Keys of layer 2 for each query: not the future, not the reserved token, perhaps not itself."""
        position = torch.arange(time, device=tokens.device)
        distance = position.unsqueeze(-1) - position
        mask = distance >= int(self.config.mask_self)
        mask = mask | ((distance == 0) & (position == 0))
        mask = F.pad(mask, (tokens.shape[-2] - time, 0), value=False)
        return mask[-1:] if self.config.read == "last" else mask
