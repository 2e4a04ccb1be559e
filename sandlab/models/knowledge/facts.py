"""Models of factual recall: one attention layer with fixed random vectors, and linear attention on one-hot tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import integer
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import HookPoint, align, linear, one_hot
from sandlab.models.transformer import Transformer, TransformerConfig
from sandlab.registry import register

__all__ = ["LinearAttentionFacts", "LinearAttentionFactsConfig", "fact_parameters", "fact_transformer", "freeze_tables"]


def fact_transformer(
    vocab: int, length: int, outputs: int, *, width: int = 32, heads: int = 4, head_width: int = 8, mlp_width: int = 128
) -> TransformerConfig:
    """One attention layer and a feed-forward block, read at the last token: no positions, norm or biases.

    x = e_T + Σ_h W_O^h Σ_t α_t W_V^h e_t,  logits_a = u_aᵀ(x + V φ(W x)). Tokens and answers have random vectors
    N(0, 1/d) that are not trained (`freeze_tables`); 4·H·d_h·d + 2·m·d weights are (`fact_parameters`). With
    mlp_width 0 the model is attention-only.

    Source: Nichani, Lee and Bietti 2024.
    """
    integer("mlp_width", mlp_width, low=0)
    return TransformerConfig(
        vocab=vocab, length=length, outputs=outputs, layers=1, heads=heads, head_width=head_width, width=width,
        mlp="relu" if mlp_width else "none", mlp_width=mlp_width or None, norm="none", positions="none", bias=False,
        init_std=None, read="last",
    )  # fmt: skip


def freeze_tables(model: nn.Module) -> None:
    """Keep the vectors of tokens and answers as they were drawn."""
    assert isinstance(model, Transformer)
    model.embedding.weight.requires_grad_(False)
    model.unembed.weight.requires_grad_(False)


def fact_parameters(config: TransformerConfig) -> int:
    """4·H·d_h·d + 2·m·d: the weights of a fact transformer that are trained."""
    (heads,) = config.heads_per_layer
    inner = heads * (config.head_width or config.width // heads)
    return 4 * inner * config.width + (0 if config.mlp == "none" else 2 * (config.mlp_width or 0) * config.width)


@dataclass(frozen=True)
class LinearAttentionFactsConfig(Config):
    """Options of the linear-attention model of facts.

    vocab, outputs   tokens and answers
    start            initial value α of every weight
    """

    vocab: int
    outputs: int
    start: float = 1e-5

    def __post_init__(self) -> None:
        self.check_integers("vocab", "outputs")
        self.check_numbers("start")


@register("models")
class LinearAttentionFacts(Model):
    """logits_a = Σ_t w_KQ(z_t) · W_OV(a, z_t): linear attention from the last token, one-hot vectors.

    From W_OV = w_KQ = α > 0 gradient flow reaches zero loss; on its way it passes a stage at which it predicts p(a | r)
    and ignores the subject.

    Activations: `attention` (the weight of each token of the vocabulary times how often it occurs), `logits`.

    Source: Nichani, Lee and Bietti 2024, the section on training dynamics.
    """

    config: LinearAttentionFactsConfig
    carries_members = True

    @configured(LinearAttentionFactsConfig)
    def __init__(self, config: LinearAttentionFactsConfig) -> None:
        super().__init__(config)
        self.key = nn.Parameter(torch.full((config.vocab,), config.start))
        self.value = nn.Parameter(torch.full((config.outputs, config.vocab), config.start))
        self.attention, self.logits = HookPoint(), HookPoint()

    def forward(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead 1 outputs"]:
        counts = one_hot(inputs, self.config.vocab, self.dtype).sum(-2)
        weight = self.attention(counts * align(self.key, counts, 1))
        return self.logits(linear(weight.unsqueeze(-2), self.value))
