"""An encoder for masked prediction: several layers that see the whole text, with logits where a word was masked."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import require
from sandlab.models._parts.cache import KeyValueCache
from sandlab.models.base import check_length, configured
from sandlab.models.hooks import record
from sandlab.models.transformer import Transformer, TransformerConfig
from sandlab.registry import register

__all__ = ["MaskedEncoder", "MaskedEncoderConfig"]


@dataclass(frozen=True)
class MaskedEncoderConfig(TransformerConfig):
    """Options of the encoder: those of the transformer, with other defaults, and two more.

    vocab           tokens without marks: the `outputs` of a world of masked words
    attention_std   standard deviation of the initial keys, queries and values (None: as init_std says); near zero, all
                    attention is uniform at first
    marked          None: logits at every position. k: tokens from `vocab` on are marked ones, token − vocab is what the
                    model sees, and logits are computed at the last k marked positions alone
    """

    layers: int = 4
    heads: int | tuple[int, ...] = 4
    width: int = 128
    causal: bool = False
    tied: bool = True
    readout_bias: bool = True
    attention_std: float | None = None
    marked: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_numbers("attention_std", low=0.0)
        self.check_integers("marked")


@register("models")
class MaskedEncoder(Transformer):
    """Transformer encoder for masked prediction (4 layers of 4 heads in §2.1.6.1 of Li 2024; Devlin et al. 2019)."""

    config: MaskedEncoderConfig

    @configured(MaskedEncoderConfig)
    def __init__(self, config: MaskedEncoderConfig) -> None:
        # The transformer's own constructor takes options one by one.
        Transformer.__init__.__wrapped__(self, config)  # type: ignore[attr-defined]
        if config.attention_std is not None:
            for layer in self.layers:
                for part in (layer.attention.key, layer.attention.query, layer.attention.value):
                    nn.init.normal_(part.weight, std=config.attention_std)

    def forward(
        self, inputs: Int[Tensor, "*lead time"], cache: KeyValueCache | None = None
    ) -> Float[Tensor, "*lead read outputs"]:
        """Logits of every position, or of the marked ones. An encoder has no cache."""
        require(cache is None, "cache", cache, "None", "an encoder sees the tokens that follow")
        check_length(inputs.shape[-1], self.config.length)
        x = self.embed_tokens(inputs % self.config.vocab)
        for layer in self.layers:
            x = layer(x)
        if self.config.marked is not None:
            places = (inputs >= self.config.vocab).int().argsort(dim=-1, stable=True)[..., -self.config.marked :]
            x = x.gather(-2, places.unsqueeze(-1).expand(*places.shape, x.shape[-1]))
        return self.read_out(self.ln_final(x))

    def table(self) -> Float[Tensor, "vocab width"]:
        """Input embeddings of the tokens."""
        return self.embedding.weight.detach()

    @torch.no_grad()
    def mean_attention(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch query key"]:
        """Attention between positions, averaged over layers and heads."""
        with record(self, "layers.*.attention.pattern") as cache:
            self(tokens)
        return torch.stack([cache[name].mean(-3) for name in cache]).mean(0)
