"""A small trainable transformer in the arrangements of the balance theory, with linear positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, integer, number, require
from sandlab.models.attention import Attention
from sandlab.models.base import Config, Model
from sandlab.models.layers import LayerNorm, Linear, Point, one_hot
from sandlab.models.transformer import MLPBlock
from sandlab.registry import register

__all__ = ["BracketLayer", "BracketTransformer", "BracketTransformerConfig"]

FARTHEST = 6000  # the place at which the linear coordinate reaches 1


@dataclass(frozen=True)
class BracketTransformerConfig(Config):
    """Options of the bracket transformer.

    vocab, outputs  tokens, and classes of the readout (default: vocab)
    layers, heads   width of the stream, mlp_width of the ReLU block
    arrangement     "pre": x + A(LN x), then h + F(LN h); "gpt": F(LN(A x + x)) + the same; "theory": the attention's
                    output is normed by itself and the stream is added after the norm, h = LN(A x) + x, then h + F(h)
    positions       "none", or "linear": one input coordinate i/6000 beside the one-hot token
    """

    vocab: int
    outputs: int | None = None
    length: int = 512
    layers: int = 2
    heads: int = 1
    width: int = 50
    mlp_width: int = 50
    arrangement: str = "theory"
    positions: str = "none"
    init_std: float | None = 0.05

    def __post_init__(self) -> None:
        for name in ("vocab", "length", "layers", "heads", "width", "mlp_width"):
            integer(name, getattr(self, name), low=1)
        require(self.width % self.heads == 0, "width", self.width, f"a multiple of heads ({self.heads})")
        choice("arrangement", self.arrangement, ("pre", "gpt", "theory"))
        choice("positions", self.positions, ("none", "linear"))
        if self.init_std is not None:
            number("init_std", self.init_std, low=0.0)


class BracketLayer(nn.Module):
    """Attention, norm, ReLU block and residual links in one of the three arrangements."""

    def __init__(self, config: BracketTransformerConfig) -> None:
        super().__init__()
        self.arrangement = config.arrangement
        width = config.width
        self.attention = Attention(width, config.heads, width // config.heads, config.length, std=config.init_std)
        self.norm = LayerNorm(width)
        self.mlp = MLPBlock(width, config.mlp_width, "relu", bias=True, std=config.init_std)
        self.mlp_norm = LayerNorm(width) if config.arrangement == "pre" else Point()
        self.stream = Point()

    def forward(self, x: Float[Tensor, "*lead time width"]) -> Float[Tensor, "*lead time width"]:
        if self.arrangement == "pre":
            x = x + self.attention(self.norm(x))
        elif self.arrangement == "gpt":
            x = self.norm(self.attention(x) + x)
        else:
            x = self.norm(self.attention(x)) + x
        return self.stream(x + self.mlp(self.mlp_norm(x)))


@register("models", "bracket-transformer")
class BracketTransformer(Model):
    """Causal transformer on brackets: one-hot tokens (and a linear position), layers, a linear readout.

    In the theory's arrangement the norm sees the attention's output alone, so what attention found is not drowned by
    the stream however long the word is. Source: Wen et al. 2023, equations for the layer and their GPT-like variant.
    """

    config_class = BracketTransformerConfig
    carries_members = True
    config: BracketTransformerConfig

    def __init__(self, **options: Any) -> None:
        config = self.configure(options)
        super().__init__(config)
        self.embed = Linear(config.vocab + 1, config.width)
        self.layers = nn.ModuleList(BracketLayer(config) for _ in range(config.layers))
        self.final = LayerNorm(config.width) if config.arrangement == "pre" else Point()
        self.unembed = Linear(config.width, config.outputs or config.vocab, std=config.init_std)

    def forward(self, tokens: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead time outputs"]:
        x = self.embed(self.inputs(tokens))
        for layer in self.layers:
            x = layer(x)
        return self.unembed(self.final(x))

    def inputs(self, tokens: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead time entries"]:
        """One-hot tokens and the position's coordinate (0 without positions)."""
        tokens_part = one_hot(tokens, self.config.vocab, self.dtype)
        place = torch.arange(tokens.shape[-1], device=tokens.device).to(tokens_part) / FARTHEST
        place = place if self.config.positions == "linear" else torch.zeros_like(place)
        return torch.cat([tokens_part, place.expand(tokens.shape).unsqueeze(-1)], -1)
