"""Associative memories: a linear map or a perceptron between fixed random vectors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice
from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import Embedding, HookPoint, Linear, linear
from sandlab.registry import register

__all__ = ["AssociativeMemory", "AssociativeMemoryConfig", "random_directions"]


@dataclass(frozen=True)
class AssociativeMemoryConfig(Config):
    """Options of the associative memory.

    items, answers   N and M (None: as many as items)
    width            d of the vectors e_x and u_y
    hidden           None: F(z) = W z; m: F(z) = Vᵀ φ(W z) with V, W of m × d
    activation       φ
    vectors          "sphere": e_x and u_y uniform on the unit sphere, frozen; "one-hot" (width = items = answers)
    zero_start       start W (linear) or V at zero instead of N(0, 1/d)
    """

    items: int
    answers: int | None = None
    width: int = 32
    hidden: int | None = None
    activation: str = "relu"
    vectors: str = "sphere"
    zero_start: bool = False

    def __post_init__(self) -> None:
        self.check_integers("items", "answers", "width", "hidden")
        choice("activation", self.activation, ACTIVATIONS)
        choice("vectors", self.vectors, ("sphere", "one-hot"))
        if self.vectors == "one-hot":
            choice("width", self.width, (self.items,), "one-hot vectors have as many coordinates as there are items")

    @property
    def outputs(self) -> int:
        return self.items if self.answers is None else self.answers


def random_directions(count: int, width: int) -> Float[Tensor, "count width"]:
    """Vectors drawn uniformly from the unit sphere."""
    return nn.functional.normalize(torch.randn(count, width), dim=-1)


@register("models")
class AssociativeMemory(Model):
    """logits_y = u_yᵀ F(e_x), F(z) = W z or Vᵀ φ(W z); the vectors e_x, u_y are drawn once and not trained.

    The memory holds f* when argmax_y u_yᵀ F(e_x) = f*(x) for every x. A linear map holds up to a logarithm d²
    associations, the perceptron m·d.

    Activations: `embed`, `hidden` (with a perceptron), `retrieved`, `logits`.

    Source: Nichani, Lee and Bietti 2024; Cabannes, Dohmatob and Bietti 2024.
    """

    config: AssociativeMemoryConfig
    carries_members = True

    @configured(AssociativeMemoryConfig)
    def __init__(self, config: AssociativeMemoryConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.items, config.width)
        self.unembedding = Embedding(config.outputs, config.width)
        for table in (self.embedding, self.unembedding):
            table.weight.requires_grad_(False)
            one_hot = config.vectors == "one-hot"
            rows = len(table.weight)
            table.weight.copy_(torch.eye(rows, config.width) if one_hot else random_directions(rows, config.width))
        inner = config.width if config.hidden is None else config.hidden
        self.up_proj = Linear(config.width, inner, bias=False)
        self.down_proj = None if config.hidden is None else Linear(inner, config.width, bias=False)
        if config.zero_start:
            nn.init.zeros_((self.down_proj or self.up_proj).weight)
        self.embed, self.hidden, self.retrieved, self.logits = (HookPoint() for _ in range(4))

    @property
    def trained_parameters(self) -> int:
        """d² or 2md: the size that capacity is measured against."""
        return sum(weight.numel() for weight in self.parameters() if weight.requires_grad)

    def forward(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead 1 answers"]:
        x = self.up_proj(self.embed(self.embedding(inputs[..., -1:])))
        if self.down_proj is not None:
            x = self.down_proj(self.hidden(ACTIVATIONS[self.config.activation](x)))
        return self.logits(linear(self.retrieved(x), self.unembedding.weight))
