"""Models whose first layer is minimal: a bracket is known by its type and its depth alone (Wen et al. 2023, §2)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, require
from sandlab.models._parts.transformer_layer import MLPBlock
from sandlab.models.attention import attention_pattern, causal_mask
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import HookPoint, LayerNorm, Linear, module_list
from sandlab.registry import register

__all__ = [
    "BalanceLayer",
    "BalanceTransformer",
    "BalanceTransformerConfig",
    "MinimalDyck",
    "MinimalDyckConfig",
    "code_table",
    "depth_codes",
    "pair_code",
]


def pair_code(kind: int, level: int, depth: int) -> int:
    """Code of the opening bracket of a pair of type t and level d: 2(tD + d − 1). Its closing bracket has the next."""
    return 2 * (kind * depth + level - 1)


def depth_codes(tokens: Int[Tensor, "*lead time"], types: int, depth: int) -> Int[Tensor, "*lead time"]:
    """Code of each bracket by type t and level d: opening 2(tD + d − 1) (`pair_code`), closing one more, START 2kD.

    The level of a bracket is the depth of the pair it belongs to: of an open bracket the depth after it, of a closing
    one the depth before it. Tokens: type t opens with 2t and closes with 2t+1, START is 2k.
    """
    bracket = tokens < 2 * types
    opens = bracket & (tokens % 2 == 0)
    closes = bracket & (tokens % 2 == 1)
    after = opens.long().cumsum(-1) - closes.long().cumsum(-1)
    level = (after + closes.long()).clamp(1, depth)
    codes = 2 * ((tokens // 2) * depth + level - 1) + closes.long()
    return torch.where(bracket, codes, 2 * types * depth)


def code_table(types: int, depth: int, kind: str) -> Float[Tensor, "code dim"]:
    """The fixed embedding e of every code, START last, float64.

    "type-depth"   one coordinate per code
    "type+depth"   one-hot bracket, then one-hot level
    "type-angle"   one-hot bracket, then (cos θ, sin θ), θ = arctan(d/(D + 2 − d)) with d the depth after the bracket
    """
    choice("kind", kind, ("type-depth", "type+depth", "type-angle"))
    codes = 2 * types * depth + 1
    if kind == "type-depth":
        return torch.eye(codes, dtype=torch.float64)
    width = 2 * types + 1 + (depth if kind == "type+depth" else 2)
    table = torch.zeros(codes, width, dtype=torch.float64)
    table[-1, 2 * types] = 1.0
    for code in range(codes - 1):
        pair, closing = divmod(code, 2)
        bracket, level = divmod(pair, depth)
        table[code, 2 * bracket + closing] = 1.0
        if kind == "type+depth":
            table[code, 2 * types + 1 + level] = 1.0
        else:
            after = level + 1 - closing
            angle = math.atan(after / (depth + 2 - after))
            table[code, 2 * types + 1 :] = torch.tensor([math.cos(angle), math.sin(angle)])
    return table


@dataclass(frozen=True)
class MinimalDyckConfig(Config):
    """Options of the trained model with a minimal first layer.

    types, depth   k and D of the language
    outputs        classes of the readout (default: one for each bracket)
    embedding      "type-depth", "type+depth" or "type-angle" (see `code_table`); it is not trained
    width          of keys, queries and values; mlp_width of the feed-forward block, 0 for none
    residual       add the (linearly mapped) embedding to the attention's output
    positions      "none", or "linear": one more coordinate i/6000
    """

    types: int = 2
    depth: int = 4
    outputs: int | None = None
    embedding: str = "type-depth"
    width: int = 50
    mlp_width: int = 0
    residual: bool = False
    positions: str = "none"

    def __post_init__(self) -> None:
        self.check_integers("types", "depth", "width", "outputs")
        self.check_integers("mlp_width", low=0)
        choice("embedding", self.embedding, ("type-depth", "type+depth", "type-angle"))
        choice("positions", self.positions, ("none", "linear"))


@register("models")
class MinimalDyck(Model):
    """One attention layer over (type, depth) embeddings, a layer norm and a linear readout.

    A two-layer transformer whose first layer does its job perfectly: the attention is that of the second layer.
    Queries and keys have biases, and scores are divided by √width, as in a standard layer.
    Source: Wen et al. 2023, §4.2.
    """

    carries_members = True
    config: MinimalDyckConfig
    table: Tensor

    @configured(MinimalDyckConfig)
    def __init__(self, config: MinimalDyckConfig) -> None:
        super().__init__(config)
        self.register_buffer(
            "table", code_table(config.types, config.depth, config.embedding).float(), persistent=False
        )
        inputs = self.table.shape[1] + 1
        self.query, self.key, self.value = (Linear(inputs, config.width) for _ in range(3))
        self.scores, self.pattern, self.z = HookPoint(), HookPoint(), HookPoint()
        self.skip = Linear(inputs, config.width, bias=False) if config.residual else None
        self.norm = LayerNorm(config.width)
        hidden = config.mlp_width
        self.mlp = MLPBlock(config.width, hidden, "relu", bias=True, std=None) if hidden else None
        self.unembed = Linear(config.width, config.outputs or 2 * config.types)

    def forward(self, tokens: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead time outputs"]:
        x = self.embed(tokens)
        scores = self.scores(self.query(x) @ self.key(x).mT / math.sqrt(self.config.width))
        z = self.z(self.pattern(attention_pattern(scores, causal_mask(scores))) @ self.value(x))
        y = self.norm(z if self.skip is None else z + self.skip(x))
        return self.unembed(y if self.mlp is None else y + self.mlp(y))

    def embed(self, tokens: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead time dim"]:
        """e(type, depth) and the position's coordinate (0 without positions)."""
        x = self.table[depth_codes(tokens, self.config.types, self.config.depth)]
        position = torch.arange(tokens.shape[-1], device=tokens.device).to(x) / 6000
        position = position if self.config.positions == "linear" else torch.zeros_like(position)
        return torch.cat([x, position.expand(tokens.shape).unsqueeze(-1)], -1)

    def contributions(self) -> tuple[Float[Tensor, "key query"], Float[Tensor, "key dim"]]:
        """Scores between all codes and the centred value of each, for the balance lens (float64)."""
        with torch.no_grad():
            x = torch.cat([self.table, torch.zeros_like(self.table[:, :1])], -1)
            scores = (self.key(x).double() @ self.query(x).double().mT) / math.sqrt(self.config.width)
            value = self.value(x).double()
        return scores, value - value.mean(-1, keepdim=True)


@dataclass(frozen=True)
class BalanceTransformerConfig(Config):
    """Options of the theory's transformer.

    types, depth   k and D of the language
    coding         "type-depth": each bracket enters as its (type, depth) code; "tokens": as the plain token
    widths         of the stream before each layer and after the last
    hidden         widths inside each layer's ReLU network
    floor          C of the norm LN_C(a) = P⊥a/max(‖P⊥a‖, C)
    arrangement    "theory": g(LN(attention) + x); "gpt": g(LN(attention + x))
    blend          b: LN is mixed with the identity, b·LN + (1 − b)·id
    """

    types: int
    depth: int
    coding: str = "type-depth"
    widths: tuple[int, ...] = (17, 4)
    hidden: tuple[tuple[int, ...], ...] = ((32,),)
    floor: float = 1e-9
    arrangement: str = "theory"
    blend: float = 1.0

    def __post_init__(self) -> None:
        self.check_integers("types", "depth")
        self.check_numbers("floor", low=0.0)
        self.check_numbers("blend", low=0.0, high=1.0)
        choice("coding", self.coding, ("type-depth", "tokens"))
        choice("arrangement", self.arrangement, ("theory", "gpt"))
        object.__setattr__(self, "hidden", tuple(tuple(row) for row in self.hidden))
        fits = len(self.widths) == len(self.hidden) + 1 and len(self.hidden) >= 1
        require(fits, "widths", self.widths, f"one more than the layers ({len(self.hidden)})")


class BalanceLayer(nn.Module):
    """g(LN_C(W_V X σ(mask + Xᵀ M X)) + X): M merges keys and queries, g is a ReLU network."""

    def __init__(self, width: int, hidden: tuple[int, ...], outputs: int, config: BalanceTransformerConfig) -> None:
        super().__init__()
        self.floor, self.arrangement, self.blend = config.floor, config.arrangement, config.blend
        self.score = nn.Parameter(torch.randn(width, width) / width)
        self.value = nn.Parameter(torch.randn(width, width) / math.sqrt(width))
        self.scores, self.pattern, self.z, self.normed = HookPoint(), HookPoint(), HookPoint(), HookPoint()
        self.maps = module_list(Linear(a, b) for a, b in itertools.pairwise([width, *hidden, outputs]))

    def forward(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time outputs"]:
        # scores[query, key] = e(key)ᵀ M e(query)
        scores = self.scores(x @ self.score.mT @ x.mT)
        z = self.z(self.pattern(attention_pattern(scores, causal_mask(scores))) @ (x @ self.value.mT))
        x = self.normed(self.norm(z) + x if self.arrangement == "theory" else self.norm(z + x))
        *inner, last = self.maps
        for linear_map in inner:
            x = linear_map(x).relu()
        return last(x)

    def norm(self, a: Float[Tensor, "*lead width"]) -> Float[Tensor, "*lead width"]:
        """b · P⊥a/max(‖P⊥a‖, C) + (1 − b) · a."""
        centred = a - a.mean(-1, keepdim=True)
        normal = centred / centred.norm(dim=-1, keepdim=True).clamp(min=self.floor)
        return normal if self.blend == 1.0 else self.blend * normal + (1 - self.blend) * a


@register("models")
class BalanceTransformer(Model):
    """The transformer of the balance theorems: merged scores, a norm with a floor, ReLU networks.

    The last layer writes probabilities p; returns log max(p, 1e-12). All weights can be set by hand (see
    circuits/dyck) or trained.
    Source: Wen et al. 2023, equations for the theory's layer.
    """

    config: BalanceTransformerConfig

    @configured(BalanceTransformerConfig)
    def __init__(self, config: BalanceTransformerConfig) -> None:
        super().__init__(config)
        entries = 2 * config.types * config.depth + 1 if config.coding == "type-depth" else 2 * config.types + 1
        self.embedding = nn.Parameter(torch.eye(entries, config.widths[0]))
        self.layers = module_list(
            BalanceLayer(width, hidden, after, config)
            for width, hidden, after in zip(config.widths[:-1], config.hidden, config.widths[1:], strict=True)
        )

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time outputs"]:
        return self.probs(tokens).clamp(min=1e-12).log()

    def probs(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time outputs"]:
        """The output itself: for an exact construction, the probabilities of the next bracket."""
        config = self.config
        codes = depth_codes(tokens, config.types, config.depth) if config.coding == "type-depth" else tokens
        x = self.embedding[codes]
        for layer in self.layers:
            x = layer(x)
        return x

    def contributions(self) -> tuple[Float[Tensor, "key query"], Float[Tensor, "key dim"]]:
        """Scores between all codes in the last layer and the centred value of each (minimal first layer only)."""
        require(self.config.coding == "type-depth", "coding", self.config.coding, "'type-depth'")
        layer = self.layers[-1]
        with torch.no_grad():
            x = self.embedding.double()
            scores = x @ layer.score.double() @ x.mT
            value = x @ layer.value.double().mT
        return scores, value - value.mean(-1, keepdim=True)
