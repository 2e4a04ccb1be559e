"""A transformer that reads vectors of numbers instead of tokens."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from sandlab.errors import require
from sandlab.models.base import configured
from sandlab.models.layers import Linear
from sandlab.models.transformer import Transformer, TransformerConfig
from sandlab.registry import register

__all__ = ["RealTransformer", "RealTransformerConfig"]


@dataclass(frozen=True)
class RealTransformerConfig(TransformerConfig):
    """Options of the transformer for real inputs: those of `TransformerConfig` (vocab is not used) and

    features   numbers in each input vector
    """

    features: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_integers("features")
        require(self.embedding == "learned" and not self.tied, "embedding", self.embedding, "'learned', not tied")


@register("models")
class RealTransformer(Transformer):
    """The configurable transformer on sequences of vectors: a linear map takes the place of the token table.

    Source: Garg et al. 2022, "What can transformers learn in-context?"
    """

    config: RealTransformerConfig

    @configured(RealTransformerConfig)
    def __init__(self, config: RealTransformerConfig) -> None:
        Transformer.__init__.__wrapped__(self, config)  # type: ignore[attr-defined]
        del self.embedding
        self.read_in = Linear(config.features, config.width, bias=False)

    def embed_tokens(
        self, inputs: Float[Tensor, "*lead time features"], positions: Tensor | None = None
    ) -> Float[Tensor, "*lead time width"]:
        return self.embed(self._add_positions(self.read_in(inputs.to(self.dtype)), positions))

    def forward(self, inputs: Float[Tensor, "*lead time features"]) -> Float[Tensor, "*lead time outputs"]:  # type: ignore[override]
        x = self.embed_tokens(inputs)
        for _ in range(self.config.loops):
            for layer in self.layers:
                x = layer(x)
        return self.read_out(self.ln_final(x))
