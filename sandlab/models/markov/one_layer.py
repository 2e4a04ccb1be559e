"""The one-layer transformer for binary chains with a scalar embedding, and its reduction to three numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice
from sandlab.models._parts.transformer_layer import MLPBlock
from sandlab.models.attention import Attention
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import HookPoint, Positions, align
from sandlab.registry import register

__all__ = ["OneLayerMarkov", "OneLayerMarkovConfig", "ThreeParameterMarkov", "ThreeParameterMarkovConfig"]


@dataclass(frozen=True)
class OneLayerMarkovConfig(Config):
    """Options of the one-layer transformer for binary chains.

    length     largest number of positions; width: d, coordinates of the stream
    tied       the readout vector is the embedding vector
    attention  "softmax" or "linear" with one head, or "none"; window: how many keys back a query sees
    mlp        "relu", "gelu" or "none", with 4d hidden units
    positions  whether each position has a learned vector
    init_std   standard deviation of every drawn weight; the bias starts at 0
    """

    length: int
    width: int = 8
    tied: bool = True
    attention: str = "softmax"
    mlp: str = "relu"
    positions: bool = True
    window: int | None = None
    init_std: float = 0.02

    def __post_init__(self) -> None:
        self.check_integers("length", "width", "window")
        self.check_numbers("init_std", low=0.0)
        choice("attention", self.attention, ("softmax", "linear", "none"))
        choice("mlp", self.mlp, ("relu", "gelu", "none"))


@register("models")
class OneLayerMarkov(Model):
    """One-layer transformer on binary tokens with a scalar embedding and a scalar output.

    x_n = token_n · e + p_n,  y_n = x_n + W_O Σ_{i≤n} att_{n,i} W_V x_i,  z_n = y_n + W₂ φ(W₁ y_n),
    P(next = 1) = σ(⟨a, z_n⟩ + b);  weight tying means a = e. Logits are (0, ⟨a, z_n⟩ + b).

    Activations: `embed`, `attention.*`, `resid_mid`, `mlp.*`, `resid_post`, `logits`.
    Source: Makkuva et al. 2024, "Attention with Markov".
    """

    carries_members = True
    config: OneLayerMarkovConfig

    @configured(OneLayerMarkovConfig)
    def __init__(self, config: OneLayerMarkovConfig) -> None:
        super().__init__(config)
        width, std = config.width, config.init_std
        self.token = nn.Parameter(torch.randn(width) * std)
        if config.positions:
            self.position = Positions(config.length, width, std=std)
        self.embed, self.resid_mid, self.resid_post, self.logits = HookPoint(), HookPoint(), HookPoint(), HookPoint()
        if config.attention != "none":
            self.attention = Attention(
                width, 1, width, config.length, kind=config.attention, window=config.window, bias=False, std=std
            )
        if config.mlp != "none":
            self.mlp = MLPBlock(width, 4 * width, config.mlp, bias=False, std=std)
        if not config.tied:
            self.readout = nn.Parameter(torch.randn(width) * std)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead time 2"]:
        tokens = inputs.to(self.token.dtype).unsqueeze(-1)
        x = tokens * align(self.token, tokens, 1)
        if self.config.positions:
            x = x + align(self.position(inputs.shape[-1]), x, 2)
        x = self.embed(x)
        if self.config.attention != "none":
            x = x + self.attention(x)
        x = self.resid_mid(x)
        if self.config.mlp != "none":
            x = x + self.mlp(x)
        x = self.resid_post(x)
        readout = self.token if self.config.tied else self.readout
        return self.logits(_log_odds((x * align(readout, x, 1)).sum(-1), self.bias))


@dataclass(frozen=True)
class ThreeParameterMarkovConfig(Config):
    """Starting values of the three-parameter model; None draws one from N(0, init_std²).

    embedding    size e of the embedding (and of the tied readout)
    feedforward  signed size w of the feed-forward block
    attention    size a of the value map under uniform attention
    bias         b of the output
    init_std     standard deviation of what is drawn
    """

    embedding: float | None = None
    feedforward: float | None = None
    attention: float | None = 0.0
    bias: float | None = 0.0
    init_std: float = 0.1

    def __post_init__(self) -> None:
        self.check_numbers("init_std", low=0.0)
        self.check_numbers("embedding", "feedforward", "attention", "bias")


@register("models")
class ThreeParameterMarkov(Model):
    """The one-layer transformer on a rank-one manifold: numbers e, w, a (and a bias b) instead of matrices.

    With all matrices along one direction α ∈ {±1}^d/√d, token vectors e(x − ½)α, W_V = a·ααᵀ under uniform attention,
    W₁ = (|w|/√d)·1αᵀ and W₂ = (w/√d)·α1ᵀ with 4d hidden units, and the readout tied, the tied transformer computes

        y_n = e·[(x_n − ½) + a(mean_{i≤n} x_i − ½)],    logit_n = e·(y_n + 4w|w|·ReLU(y_n)) + b.

    Without attention (a = 0) this is logit(x) = e²(1 + 2w|w|)·x + const. `sl.circuits.three_parameter_transformer`
    gives the same function as an explicit transformer.

    Source: Makkuva et al. 2024, "Local to Global" (the reduction; the embedding into weights is derived here).
    """

    carries_members = True
    config: ThreeParameterMarkovConfig
    embedding: nn.Parameter
    feedforward: nn.Parameter
    attention: nn.Parameter
    bias: nn.Parameter

    @configured(ThreeParameterMarkovConfig)
    def __init__(self, config: ThreeParameterMarkovConfig) -> None:
        super().__init__(config)
        for name in ("embedding", "feedforward", "attention", "bias"):
            given = getattr(config, name)
            value = torch.randn(()) * config.init_std if given is None else torch.tensor(float(given))
            setattr(self, name, nn.Parameter(value))
        self.z, self.logits = HookPoint(), HookPoint()

    def forward(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead time 2"]:
        x = inputs.to(self.bias.dtype)
        e, w, a = (align(value, x, 0) for value in (self.embedding, self.feedforward, self.attention))
        count = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
        y = self.z(e * (x - 0.5 + a * (x.cumsum(-1) / count - 0.5)))
        return self.logits(_log_odds(e * (y + 4 * w * w.abs() * y.relu()), self.bias))


def _log_odds(odds: Float[Tensor, "*lead"], bias: Tensor) -> Float[Tensor, "*lead 2"]:
    """Logits (0, odds + b) of the two tokens."""
    odds = odds + align(bias, odds, 0)
    return torch.stack([torch.zeros_like(odds), odds], -1)
