"""Transformers whose position codes can be shifted, or grow along a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import integer, number, require
from sandlab.models.transformer import Transformer, TransformerConfig
from sandlab.registry import register

__all__ = ["PlacedTransformer", "PlacedTransformerConfig"]


@dataclass(frozen=True)
class PlacedTransformerConfig(TransformerConfig):
    """Options beside those of the transformer.

    slope      the code of position t is slope · t along a fixed direction (0: no such code); wants positions "none"
    shift      while training, one number drawn uniformly from 0 … shift is added to all positions of a batch
    token_std  standard deviation of the initial token vectors (None: as init_std says). Sinusoids have coordinates of
               size 1: beside them tokens of size 1/√width are faint
    """

    positions: str = "sinusoidal"
    slope: float = 0.0
    shift: int = 0
    token_std: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        number("slope", self.slope, low=0.0)
        integer("shift", self.shift, low=0)
        if self.slope:
            require(self.positions == "none", "positions", self.positions, "'none' beside a slope")
        if self.slope or self.token_std is not None:
            require(self.embedding == "learned", "embedding", self.embedding, "'learned' for slope and token_std")
        if self.token_std is not None:
            number("token_std", self.token_std, low=0.0)
        if self.shift:
            codes = self.positions in ("sinusoidal", "one-hot") or self.slope > 0
            require(codes, "shift", self.shift, "0 without codes to shift", "take positions='sinusoidal'")


@register("models", "placed-transformer")
class PlacedTransformer(Transformer):
    """A transformer with position codes that are shifted at random in training, or that grow in proportion to t.

    Linear code: p_t = slope · t · d with d = (+1, −1, +1, −1, …)/√width. The direction matters: the same number on
    every coordinate is removed by the first layer normalisation, and a model with such a code has none.
    Random shifts (one per batch) show the model positions beyond its training length (Liu et al. 2023, §5).
    """

    config_class = PlacedTransformerConfig
    config: PlacedTransformerConfig

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self.config.token_std is not None:
            nn.init.normal_(self.embedding.weight, std=self.config.token_std)

    def embed(
        self, inputs: Int[Tensor, "*lead time"], places: Int[Tensor, "*lead time"] | None = None
    ) -> Float[Tensor, "*lead time width"]:
        config, time = self.config, inputs.shape[-1]
        if config.shift and self.training and places is None:
            furthest = min(config.shift, config.length - time)
            places = torch.randint(furthest + 1, (1,), device=inputs.device) + torch.arange(time, device=inputs.device)
        if not config.slope:
            return super().embed(inputs, places)
        x = self.embedding(inputs)
        steps = torch.arange(time, device=inputs.device) if places is None else places
        signs = 1 - 2 * (torch.arange(config.width, device=x.device) % 2)
        x = x + config.slope * config.width**-0.5 * steps.unsqueeze(-1).to(x.dtype) * signs.to(x.dtype)
        if config.embedding_dropout and self.training:
            x = F.dropout(x, config.embedding_dropout)
        return self.embedded(x)
