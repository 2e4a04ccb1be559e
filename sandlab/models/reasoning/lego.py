"""The practical transformer over clauses: one layer, two heads, a feed-forward block, no positions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, flag, require
from sandlab.models.attention import attention_pattern, causal_mask, rotate
from sandlab.models.base import Config, Model, check_length, configured
from sandlab.models.layers import Embedding, HookPoint, LayerNorm, Linear, Positions, align, module_list
from sandlab.registry import register

__all__ = ["ClauseAttention", "LegoConfig", "LegoTransformer"]

SLOTS = 5
POSITIONS = ("none", "learned", "rotary", "alibi")


@dataclass(frozen=True)
class LegoConfig(Config):
    """Options of the transformer over clauses.

    vocab         tokens; the last one is the blank, whose vector is 0
    token_width   of a token's vector; a clause is five of them side by side
    heads, head_width   of queries and keys
    hidden        ReLU units of the feed-forward block
    layers        blocks (1 in the source; more for circuits and graphs)
    residual      add the input of attention and feed-forward to their outputs
    layernorm     normalise before both
    values        "full": learned value and output maps; "identity": the heads' averages of clause vectors side by side
    positions     "none", "learned", "rotary" or "alibi", counted in clauses
    length        most clauses, for learned positions
    predicted     2: logits of the fourth and fifth slot of the next clause; 5: of all
    queries       "half": logits for the last half of the clauses, where the answers stand; "all": for every clause
    """

    vocab: int
    token_width: int = 32
    heads: int = 2
    head_width: int = 64
    hidden: int = 512
    layers: int = 1
    residual: bool = False
    layernorm: bool = False
    values: str = "full"
    positions: str = "none"
    length: int = 512
    predicted: int = 2
    queries: str = "half"

    def __post_init__(self) -> None:
        self.check_integers("vocab", "token_width", "heads", "head_width", "hidden", "layers", "length")
        flag("residual", self.residual)
        flag("layernorm", self.layernorm)
        choice("values", self.values, ("full", "identity"))
        choice("positions", self.positions, POSITIONS)
        choice("predicted", self.predicted, (2, SLOTS))
        choice("queries", self.queries, ("half", "all"))
        plain = self.values == "full" or (self.layers == 1 and not self.residual)
        require(plain, "values", self.values, "'full' where layers are stacked or a residual is added")
        even = self.width % self.heads == 0
        require(even, "heads", self.heads, f"a divisor of the clause width {self.width}")

    @property
    def width(self) -> int:
        return SLOTS * self.token_width


class ClauseAttention(nn.Module):
    """Causal softmax attention over clauses, with learned or identity values and optional positions."""

    def __init__(self, config: LegoConfig) -> None:
        super().__init__()
        self.config = config
        inner = config.heads * config.head_width
        self.query = Linear(config.width, inner, bias=False)
        self.key = Linear(config.width, inner, bias=False)
        if config.values == "full":
            self.value = Linear(config.width, config.width, bias=False)
            self.output = Linear(config.width, config.width, bias=False)
        self.pattern = HookPoint()

    def forward(self, x: Float[Tensor, "*lead clause width"], last: int) -> Float[Tensor, "*lead query mixed"]:
        """What the `last` clauses gather."""
        heads, time = self.config.heads, x.shape[-2]
        query, key = self._split(self.query(x[..., -last:, :])), self._split(self.key(x))
        places = torch.arange(time, device=x.device)
        if self.config.positions == "rotary":
            query, key = rotate(query, places[-last:], 10000.0), rotate(key, places, 10000.0)
        scores = (query / math.sqrt(self.config.head_width)) @ key.mT
        pattern = self.pattern(attention_pattern(scores, causal_mask(scores), bias=self._bias(places, scores)))
        if self.config.values == "identity":
            mixed = pattern @ x.unsqueeze(-3).expand(*x.shape[:-2], heads, *x.shape[-2:])
            return mixed.transpose(-2, -3).flatten(-2)
        mixed = pattern @ self._split(self.value(x))
        return self.output(mixed.transpose(-2, -3).flatten(-2))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.config.heads, -1)).transpose(-2, -3)

    def _bias(self, places: Tensor, scores: Tensor) -> Tensor | None:
        if self.config.positions != "alibi":
            return None
        head = torch.arange(1, self.config.heads + 1, dtype=scores.dtype, device=scores.device)
        distance = (places[-scores.shape[-2] :].unsqueeze(-1) - places).to(scores.dtype)
        return -(2.0 ** (-8.0 * head / self.config.heads)).view(-1, 1, 1) * distance


class _Block(nn.Module):
    """Attention, then a feed-forward network; with or without a residual stream."""

    def __init__(self, config: LegoConfig) -> None:
        super().__init__()
        self.residual = config.residual
        mixed = config.width * (config.heads if config.values == "identity" else 1)
        self.attention = ClauseAttention(config)
        norms = (config.width, mixed) if config.layernorm else ()
        self.norms = module_list(LayerNorm(size) for size in norms)
        self.up_proj = Linear(mixed, config.hidden)
        self.down_proj = Linear(config.hidden, config.width)
        self.hidden = HookPoint()

    def forward(self, x: Tensor, last: int) -> Tensor:
        mixed = self.attention(self.norms[0](x) if len(self.norms) else x, last)
        mixed = x[..., -last:, :] + mixed if self.residual else mixed
        inside = self.norms[1](mixed) if len(self.norms) else mixed
        made = self.down_proj(self.hidden(self.up_proj(inside).relu()))
        return mixed + made if self.residual else made


@register("models")
class LegoTransformer(Model):
    """A decoder over five-token clauses: logits = read-out(FFN(attention(clause vectors))), two slots per clause.

    Logits come for the last half of the clauses only (`queries`): nothing is asked of the predicates.

    Without residual, normalisation and positions it is the network of the theory with learned embeddings and values.

    Source: Huang et al. 2025, section 7; what it leaves open is named in the config.
    """

    carries_members = True
    config: LegoConfig

    @configured(LegoConfig)
    def __init__(self, config: LegoConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab, config.token_width, std=config.token_width**-0.5)
        if config.positions == "learned":
            self.position_table = Positions(config.length, config.width)
        self.layers = module_list(_Block(config) for _ in range(config.layers))
        self.readout = Linear(config.width, config.predicted * config.vocab)
        self.logits = HookPoint()

    def forward(self, tokens: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead target vocab"]:
        x = self.clauses(tokens)
        time = x.shape[-2]
        for depth, layer in enumerate(self.layers, 1):
            answers = self.config.queries == "half" and depth == self.config.layers
            x = layer(x, (time + 1) // 2 if answers else time)
        return self.logits(self.readout(x).unflatten(-1, (self.config.predicted, -1)).flatten(-3, -2))

    def clauses(self, tokens: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead clause width"]:
        """Five token vectors side by side, with the position's vector where positions are learned."""
        shown = (tokens != self.config.vocab - 1).unsqueeze(-1)
        vectors = self.embedding(tokens) * shown
        x = vectors.unflatten(-2, (-1, SLOTS)).flatten(-2)
        if self.config.positions != "learned":
            return x
        check_length(x.shape[-2], self.config.length)
        return x + align(self.position_table(x.shape[-2]), x, 2)
