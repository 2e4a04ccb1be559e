"""The one-layer transformer of the theory: attention over clauses without positions, then smooth ReLUs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, flag, require
from sandlab.models.attention import attention_pattern, causal_mask
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import HookPoint
from sandlab.models.reasoning.smooth_relu import SMOOTH_RELU_VARIANTS, smooth_relu
from sandlab.registry import register

__all__ = ["LegoTheoryConfig", "LegoTheoryTransformer", "clause_vectors"]

SLOTS = 5


def clause_vectors(
    tokens: Int[Tensor, "*lead time"], vocab: int, dtype: torch.dtype
) -> Float[Tensor, "*lead clause d"]:
    """Z = (e_{v1}, …, e_{v5}) ∈ R^{5d} of every clause: unit vectors side by side, 0 for the blank (the last token).

    Source: Huang et al. 2025, Definitions 3.2 and 3.3.
    """
    table = torch.eye(vocab, dtype=dtype, device=tokens.device)
    table[-1] = 0.0
    return table[tokens].unflatten(-2, (-1, SLOTS)).flatten(-2)


@dataclass(frozen=True)
class LegoTheoryConfig(Config):
    """Options of the theory's transformer.

    vocab         d, the blank (last token) included
    neurons       m per slot and class
    clip          B: logits are cut from above
    power, threshold, variant   q, ϱ and the kind of smooth ReLU
    bias          b = μ of every neuron, never trained; None: σ_0 log d
    init_std      σ_0 of W; None: d^{−1/2}
    block_sparse  only the blocks (4,3) and (4,4) of Q exist (Assumption 3.5); else all of Q
    """

    vocab: int
    neurons: int = 8
    clip: float = 16.0
    power: int = 4
    threshold: float = 0.1
    variant: str = "zero-neg"
    bias: float | None = 0.0
    init_std: float | None = None
    block_sparse: bool = True

    def __post_init__(self) -> None:
        self.check_integers("vocab", "neurons")
        self.check_numbers("bias", "init_std")
        choice("variant", self.variant, SMOOTH_RELU_VARIANTS)
        require(self.clip > 0, "clip", self.clip, "above 0")
        flag("block_sparse", self.block_sparse)

    @property
    def std(self) -> float:
        return self.vocab**-0.5 if self.init_std is None else self.init_std


@register("models")
class LegoTheoryTransformer(Model):
    """F = FFN∘Attention: [F_i]_j = min(Σ_r sReLU(⟨W_{ijr}, Σ_k Attn_k Z_k⟩ + b), B), scores Z_queryᵀ Q Z_k.

    No positions, no residual, identity values, no 1/√d. Logits come for the five slots of the next clause, five
    positions per clause. Q starts at 0; block (4,3) looks predicates up, block (4,4) looks at answers.

    Source: Huang et al. 2025, Definition 3.5, Assumptions 3.3–3.5.
    """

    config: LegoTheoryConfig
    bias: Tensor

    @configured(LegoTheoryConfig)
    def __init__(self, config: LegoTheoryConfig) -> None:
        super().__init__(config)
        d = config.vocab
        if config.block_sparse:
            self.q43, self.q44 = nn.Parameter(torch.zeros(d, d)), nn.Parameter(torch.zeros(d, d))
        else:
            self.q = nn.Parameter(torch.zeros(SLOTS * d, SLOTS * d))
        self.weight = nn.Parameter(config.std * torch.randn(SLOTS, d, config.neurons, SLOTS * d))
        bias = config.std * math.log(d) if config.bias is None else config.bias
        self.register_buffer("bias", torch.tensor(float(bias)))
        self.scores, self.pattern, self.mixed, self.logits = HookPoint(), HookPoint(), HookPoint(), HookPoint()

    def forward(self, tokens: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead target vocab"]:
        z = clause_vectors(tokens, self.config.vocab, self.weight.dtype)
        scores = self.scores(self.attention_scores(z))
        pattern = self.pattern(attention_pattern(scores, causal_mask(scores)))
        return self.logits(self.feed_forward(self.mixed(pattern @ z)).flatten(-3, -2))

    def attention_scores(self, z: Float[Tensor, "*lead clause d"]) -> Float[Tensor, "*lead clause clause"]:
        """Z_jᵀ Q Z_k for every pair of clauses."""
        if not self.config.block_sparse:
            return z @ self.q @ z.mT
        _, _, third, fourth, _ = z.unflatten(-1, (SLOTS, -1)).unbind(-2)
        return fourth @ self.q43 @ third.mT + fourth @ self.q44 @ fourth.mT

    def neurons(self, mixed: Float[Tensor, "*lead d"]) -> Float[Tensor, "*lead slot class neuron"]:
        """Λ_{i,j,r} = ⟨W_{ijr}, h⟩ + b."""
        return torch.einsum("...k,ijrk->...ijr", mixed, self.weight) + self.bias

    def feed_forward(self, mixed: Float[Tensor, "*lead d"]) -> Float[Tensor, "*lead slot vocab"]:
        """The logits of the five slots, cut at B."""
        config = self.config
        active = smooth_relu(self.neurons(mixed), config.power, config.threshold, config.variant)
        return active.sum(-1).clamp(max=config.clip)
