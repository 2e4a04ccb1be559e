"""Models of factual recall: one attention layer with fixed random vectors, and linear attention on one-hot tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import require
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import Embedding, HookPoint, Linear, align, contract, linear, look_up, one_hot
from sandlab.registry import register

__all__ = ["FactTransformer", "FactTransformerConfig", "LinearAttentionFacts", "LinearAttentionFactsConfig"]


@dataclass(frozen=True)
class FactTransformerConfig(Config):
    """Options of the fact transformer.

    vocab        number of tokens; the last is EOS
    outputs      number of answers
    width        d, of the frozen vectors
    heads        H
    head_width   d_h of each
    mlp_width    m hidden units; 0: attention alone
    """

    vocab: int
    outputs: int
    width: int = 32
    heads: int = 4
    head_width: int = 8
    mlp_width: int = 128

    def __post_init__(self) -> None:
        self.check_integers("vocab", "outputs", "width", "heads", "head_width")
        self.check_integers("mlp_width", low=0)


@register("models")
class FactTransformer(Model):
    """One attention layer and a feed-forward block, read at the last token EOS: no positions, norm or biases.

    x = e_EOS + Σ_h W_O^h Σ_t α_t W_V^h e_t,  logits_a = u_aᵀ(x + V φ(W x)). Tokens and answers have random vectors
    N(0, 1/d), which are drawn once and not trained; 4·H·d_h·d + 2·m·d weights are. EOS is the vocabulary's last token
    and ends every sequence.

    Without positions all copies of a token have the same score, and the query is always that of EOS, so that sums over
    a sequence are sums over the vocabulary: Σ_t α_t v_t = Σ_z n_z e^{s_z} v_z / Σ_z n_z e^{s_z}, where n_z counts the
    copies of z. Scores and values are computed once for a batch, not once for each of its tokens. A `Transformer` with
    these weights has these logits.

    Activations: `pattern` (what EOS pays to each token of the vocabulary, its copies taken together), `resid_mid`,
    `hidden`, `logits`.

    Source: Nichani, Lee and Bietti 2024.
    """

    config: FactTransformerConfig
    carries_members = True

    @configured(FactTransformerConfig)
    def __init__(self, config: FactTransformerConfig) -> None:
        super().__init__(config)
        width, inner = config.width, config.heads * config.head_width
        self.embedding = Embedding(config.vocab, width, std=width**-0.5)
        self.query, self.key, self.value = (Linear(width, inner, bias=False) for _ in range(3))
        self.output = Linear(inner, width, bias=False)
        self.up_proj = Linear(width, config.mlp_width, bias=False) if config.mlp_width else None
        self.down_proj = Linear(config.mlp_width, width, bias=False) if config.mlp_width else None
        self.unembed = Linear(width, config.outputs, bias=False)
        for table in (self.embedding, self.unembed):
            table.weight.requires_grad_(False)
        self.pattern, self.resid_mid, self.hidden, self.logits = (HookPoint() for _ in range(4))

    @property
    def trained_parameters(self) -> int:
        """4·H·d_h·d + 2·m·d."""
        return sum(weight.numel() for weight in self.parameters() if weight.requires_grad)

    def forward(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead 1 outputs"]:
        table = self.embedding.weight
        end, counts = table[..., -1:, :], self._counts(inputs)
        x = self.resid_mid(align(end.squeeze(-2), counts, 1) + self.output(self._attend(counts, table, end)))
        if self.up_proj is not None and self.down_proj is not None:
            x = x + self.down_proj(self.hidden(F.relu(self.up_proj(x))))
        return self.logits(self.unembed(x).unsqueeze(-2))

    def _attend(self, counts: Float[Tensor, "*lead vocab"], table: Tensor, end: Tensor) -> Float[Tensor, "*lead inner"]:
        """Each head's mean of the values; what weighs e^{-80} of the largest weight counts as much."""
        heads = (self.config.heads, self.config.head_width)
        products = (self.query(end) * self.key(table)).unflatten(-1, heads).sum(-1) / self.config.head_width**0.5
        weight = (products - products.amax(-2, keepdim=True)).clamp(min=-80.0).exp()  # (vocab, head)
        values = self.value(table).unflatten(-1, heads)
        total = linear(counts, weight.mT).unsqueeze(-1)
        if self.pattern.hooked:
            pattern = self.pattern(counts.unsqueeze(-2) * align(weight.mT, counts.unsqueeze(-2), 2) / total)
            return contract("hv,vhd->hd", pattern, values).flatten(-2)
        summed = linear(counts, (weight.unsqueeze(-1) * values).flatten(-2).mT)
        return (summed.unflatten(-1, heads) / total).flatten(-2)

    def _counts(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead vocab"]:
        """How often each token of the vocabulary occurs; one outside it, or another end than EOS, is refused."""
        vocab = self.config.vocab
        if inputs.device.type == "cpu" and not torch.compiler.is_compiling() and inputs.numel():
            look_up(torch.stack(inputs.aminmax()), self.embedding.weight.view(-1, vocab, self.config.width)[0])
            require(
                bool((inputs[..., -1] == vocab - 1).all()), "inputs", "another last token", f"EOS = {vocab - 1} last"
            )
        counts = torch.zeros(*inputs.shape[:-1], vocab, dtype=self.dtype, device=inputs.device)
        return counts.scatter_add(-1, inputs, torch.ones_like(inputs, dtype=self.dtype))


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
