"""One head with linear positions i/C: the model in which attention drift can be computed from the weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import require
from sandlab.models.attention import attention_pattern, causal_mask
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import Embedding, HookPoint, Linear
from sandlab.registry import register

__all__ = ["LinearMemoryConfig", "LinearPositionMemory"]


@dataclass(frozen=True)
class LinearMemoryConfig(Config):
    """Options of the one-head memory.

    vocab, outputs  number of input tokens; classes of the readout
    width           of token vectors, queries, keys and values
    scale           C: position i, counted from 1, enters as the number i/C
    """

    vocab: int = 3
    outputs: int = 2
    width: int = 32
    scale: float = 8.0

    def __post_init__(self) -> None:
        self.check_integers("vocab", "outputs", "width")
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
        x = self.embedding(tokens)
        position = torch.arange(1, tokens.shape[-1] + 1, device=tokens.device).to(x) / self.config.scale
        at = torch.cat([x, position.expand(tokens.shape).unsqueeze(-1)], -1)
        scores = self.query(at) @ self.key(at).mT
        pattern = self.pattern(attention_pattern(scores, causal_mask(scores)))
        return self.readout(pattern @ self.value(x))
