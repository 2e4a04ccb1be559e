"""One head with linear positions i/C: the model in which attention drift can be computed from the weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import Embedding, HookPoint, Linear
from sandlab.registry import register

__all__ = ["LinearMemoryConfig", "LinearPositionMemory"]


@dataclass(frozen=True)
class LinearMemoryConfig(Config):
    """Input and output alphabet, width of the head, and C: position i enters as the number i/C, i from 1."""

    vocab: int = 3
    outputs: int = 2
    width: int = 32
    scale: float = 8.0

    def __post_init__(self) -> None:
        for name in ("vocab", "outputs", "width"):
            integer(name, getattr(self, name), low=1)
        require(self.scale > 0, "scale", self.scale, "above 0")


@register("models")
class LinearPositionMemory(Model):
    """One causal softmax head: queries and keys see the token and the number i/C, values the token; a linear readout.

    The score of query i and key j is (W_Qe e_i + W_Qp i/C)·(W_Ke e_j + W_Kp j/C), as in Liu et al. 2023, Prop. 5.
    """

    carries_members = True
    config: LinearMemoryConfig

    @configured(LinearMemoryConfig)
    def __init__(self, config: LinearMemoryConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab, config.width, std=config.width**-0.5)
        self.query = Linear(config.width + 1, config.width, bias=False)
        self.key = Linear(config.width + 1, config.width, bias=False)
        self.value = Linear(config.width, config.width, bias=False)
        self.pattern = HookPoint()
        self.readout = Linear(config.width, config.outputs)

    def forward(self, tokens: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead time outputs"]:
        embedded = self.embedding(tokens)
        place = torch.arange(1, tokens.shape[-1] + 1, device=tokens.device).to(embedded) / self.config.scale
        placed = torch.cat([embedded, place.expand(tokens.shape).unsqueeze(-1)], -1)
        scores = self.query(placed) @ self.key(placed).mT
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        pattern = self.pattern(scores.masked_fill(ahead, -torch.inf).softmax(-1))
        return self.readout(pattern @ self.value(embedded))
