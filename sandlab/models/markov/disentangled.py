"""The disentangled transformer: outputs are concatenated, not added, so every coordinate keeps its meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, integer, require
from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models._parts.transformer_layer import MLPBlock
from sandlab.models.attention import attention_pattern, causal_mask
from sandlab.models.base import Config, Model, check_length, configured
from sandlab.models.layers import HookPoint, Linear, contract, linear, module_list, one_hot
from sandlab.registry import register

__all__ = ["DisentangledTransformer", "DisentangledTransformerConfig"]


@dataclass(frozen=True)
class DisentangledTransformerConfig(Config):
    """Options of the disentangled transformer.

    vocab, length   alphabet size S; largest number of positions T
    heads           heads of each layer, first layer first: (2, 1) has two layers
    positions       "one-hot" (appended to the one-hot token) or "none"
    causal          False: positions see what follows them
    merged          each head has one matrix A, scores x A xᵀ; False: A = Qᵀ K, both of head_width rows (default: the
                    width of the stream)
    value           each head's output passes through a trained square matrix; False: the identity
    mlp             activation of a feed-forward block whose output is concatenated too, or "none"; mlp_width
                    defaults to four times the stream
    outputs         classes of the readout (default: vocab)
    output          "logits": W x itself; "probabilities": log(|W x| + floor), for a readout that gives probabilities
    init_std        of the score matrices (None: zero when merged, 1/√width for Q and K)
    readout_std     of the trained readout W (0: it starts at zero)
    read            "last" position only (logits have a time axis of 1), or "all"
    """

    vocab: int
    length: int
    heads: tuple[int, ...] = (1, 1)
    positions: str = "one-hot"
    causal: bool = True
    merged: bool = True
    head_width: int | None = None
    value: bool = False
    mlp: str = "none"
    mlp_width: int | None = None
    outputs: int | None = None
    output: str = "logits"
    floor: float = 1e-8
    init_std: float | None = None
    readout_std: float = 0.0
    read: str = "last"

    def __post_init__(self) -> None:
        self.check_integers("vocab", "length", "head_width", "mlp_width", "outputs")
        self.check_numbers("floor", "readout_std", "init_std", low=0.0)
        is_row = isinstance(self.heads, Sequence) and not isinstance(self.heads, str)
        require(is_row, "heads", self.heads, "one number per layer, such as (2, 1)")
        object.__setattr__(self, "heads", tuple(self.heads))
        for heads in self.heads:
            integer("heads", heads, low=1)
        choice("positions", self.positions, ("one-hot", "none"))
        choice("mlp", self.mlp, (*ACTIVATIONS, "none"))
        choice("output", self.output, ("logits", "probabilities"))
        choice("read", self.read, ("last", "all"))
        stuck = not self.merged and self.init_std == 0
        require(not stuck, "init_std", self.init_std, "above 0 unless merged", "Q = K = 0 never leaves zero")

    @property
    def widths(self) -> tuple[int, ...]:
        """Width of the stream before the first layer and after each: d₀ = S + T, d_l = d_{l−1} (1 + heads_l)."""
        widths = [self.vocab + (self.length if self.positions == "one-hot" else 0)]
        for heads in self.heads:
            widths.append(widths[-1] * (1 + heads) * (1 if self.mlp == "none" else 2))
        return tuple(widths)


class DisentangledAttention(nn.Module):
    """[σ(x A₁ xᵀ) x V₁ᵀ, …, σ(x A_h xᵀ) x V_hᵀ]: heads side by side, no output map, no scaling of the scores."""

    def __init__(self, config: DisentangledTransformerConfig, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.merged, self.causal = heads, config.merged, config.causal
        default = 0.0 if config.merged else 1 / math.sqrt(width)
        std = default if config.init_std is None else config.init_std
        if config.merged:
            self.weight = nn.Parameter(torch.randn(heads, width, width) * std)
        else:
            inner = heads * (config.head_width or width)
            self.query = Linear(width, inner, bias=False, std=std)
            self.key = Linear(width, inner, bias=False, std=std)
        self.value = nn.Parameter(torch.randn(heads, width, width) / math.sqrt(width)) if config.value else None
        self.scores, self.pattern, self.z = HookPoint(), HookPoint(), HookPoint()

    def forward(self, x: Float[Tensor, "*lead time width"], *, last: bool = False) -> Float[Tensor, "*lead query out"]:
        """The heads' outputs at every position, or at the `last` one only."""
        scores = self.scores(self._score(x[..., -1:, :] if last else x, x))
        pattern = self.pattern(attention_pattern(scores, causal_mask(scores) if self.causal else None))
        z = self.z((pattern @ x.unsqueeze(-3)).transpose(-2, -3))
        return (z if self.value is None else contract("ihd,hed->ihe", z, self.value)).flatten(-2)

    def _score(self, queries: Tensor, keys: Tensor) -> Float[Tensor, "*lead head query key"]:
        if not self.merged:
            return self._split(self.query(queries)) @ self._split(self.key(keys)).mT
        # (x A)[head] as one product with all heads' matrices side by side.
        return self._split(linear(queries, self.weight.mT.flatten(-3, -2))) @ keys.unsqueeze(-3).mT

    def _split(self, x: Tensor) -> Float[Tensor, "*lead head time width"]:
        return x.unflatten(-1, (self.heads, -1)).transpose(-2, -3)


class DisentangledLayer(nn.Module):
    """x ← [x, attention(x)], then perhaps x ← [x, mlp(x)]."""

    def __init__(self, config: DisentangledTransformerConfig, width: int, heads: int) -> None:
        super().__init__()
        self.attention = DisentangledAttention(config, width, heads)
        self.resid_mid = HookPoint()
        self.has_mlp = config.mlp != "none"
        if self.has_mlp:
            middle = width * (1 + heads)
            self.mlp = MLPBlock(middle, config.mlp_width or 4 * middle, config.mlp, bias=True, std=None)
        self.resid_post = HookPoint()

    def forward(self, x: Tensor, *, last: bool = False) -> Tensor:
        kept = x[..., -1:, :] if last else x
        x = self.resid_mid(torch.cat([kept, self.attention(x, last=last)], -1))
        return self.resid_post(torch.cat([x, self.mlp(x)], -1) if self.has_mlp else x)


@register("models")
class DisentangledTransformer(Model):
    """Attention-only transformer that concatenates: r₀ = [token, position] one-hot, r_l = [r_{l−1}, heads of layer l].

    Each head computes σ(r A rᵀ) r Vᵀ with causal softmax σ, score r[query] A r[key]ᵀ, and value V = I unless trained;
    the readout is W r_L. It represents what an attention-only transformer with the same layers and heads represents,
    and each block of A says which earlier block is compared with which. Stream of layer l: the previous stream first,
    then one copy of its width per head. Start: A = 0 and W = 0, so the first prediction is uniform.

    Parameters: `layers.i.attention.weight` (head, query width, key width) when merged, else
    `layers.i.attention.{query,key}.weight`; `layers.i.attention.value` (head, width, width); `unembed.weight`.
    Activations: `embed`, `layers.i.attention.{scores,pattern}` (batch, head, query, key), `.z` (batch, time,
    head, width), `layers.i.{resid_mid,resid_post}`, `layers.i.mlp.hidden`, `readout`, `logits`. When only the last
    position is read, the last layer is computed for that query only (a query axis of 1).

    Source: Friedman, Wettig and Chen 2023; Nichani, Damian and Lee 2024, "How transformers learn causal structure with
    gradient descent"; Varre, Yüce and Flammarion 2025, Definition 2.2.
    """

    carries_members = True
    config: DisentangledTransformerConfig

    @configured(DisentangledTransformerConfig)
    def __init__(self, config: DisentangledTransformerConfig) -> None:
        super().__init__(config)
        self.embed = HookPoint()
        self.layers = module_list(
            DisentangledLayer(config, width, heads) for width, heads in zip(config.widths, config.heads)
        )
        outputs = config.outputs or config.vocab
        self.unembed = Linear(config.widths[-1], outputs, bias=False, std=config.readout_std)
        self.readout, self.logits = HookPoint(), HookPoint()

    def forward(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead read outputs"]:
        config = self.config
        check_length(inputs.shape[-1], config.length)
        x = self.embed(self._embed(inputs))
        for depth, layer in enumerate(self.layers, start=1):
            # Nothing reads the other positions of the last layer.
            x = layer(x, last=config.read == "last" and depth == len(self.layers))
        logits = self.readout(self.unembed(x))
        if config.output == "probabilities":
            logits = (logits.abs() + config.floor).log()
        return self.logits(logits)

    def _embed(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead time width"]:
        token = one_hot(inputs, self.config.vocab, self.dtype)
        if self.config.positions == "none":
            return token
        position = torch.eye(self.config.length, dtype=token.dtype, device=token.device)[: inputs.shape[-1]]
        return torch.cat([token, position.expand(*token.shape[:-1], -1)], -1)
