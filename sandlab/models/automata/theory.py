"""The transformer of the constructions: plain attention, ReLU networks, no norms; every weight can be set by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, require
from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models.attention import attention_pattern, causal_mask
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import HookPoint, Linear, module_list
from sandlab.registry import register

__all__ = ["TheoryTransformer", "TheoryTransformerConfig", "activate"]

# How many numbers an intermediate result may have when nothing is recorded and no gradient is needed: on a processor
# what its cache holds, on a GPU what keeps it busy.
CHUNK = {"cpu": 1 << 17, "cuda": 1 << 27}
SPARSE_FROM, SPARSE_BELOW = 50_000, 0.02


@dataclass(frozen=True)
class TheoryTransformerConfig(Config):
    """Options of the theory transformer.

    vocab, length    number of letters; longest word
    outputs          classes of the readout
    width            d, coordinates of the stream
    heads            heads of each layer (0: the layer has no attention)
    head_width       k of each layer, the same for scores and values
    hidden           widths inside the feed-forward block of each layer (none: the layer has no such block)
    activation       for each of these widths: "relu", "sine", …, or "max:2x5" (see `activate`)
    prefix           number of anchor tokens before the word; each has its own vector
    attention        "softmax", or "hard": all weight on the largest score, on the latest position among equals
    precision        "float64" or "float32"
    channels         a name for each coordinate of the stream
    note             how the weights came about
    """

    vocab: int
    length: int
    outputs: int
    width: int
    heads: tuple[int, ...] = (1,)
    head_width: tuple[int, ...] = (1,)
    hidden: tuple[tuple[int, ...], ...] = ((16,),)
    activation: tuple[tuple[str, ...], ...] = (("relu",),)
    prefix: int = 0
    attention: str = "softmax"
    precision: str = "float64"
    channels: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        self.check_integers("vocab", "length", "outputs", "width")
        self.check_integers("prefix", low=0)
        choice("attention", self.attention, ("softmax", "hard"))
        choice("precision", self.precision, ("float64", "float32"))
        for name in ("hidden", "activation"):
            object.__setattr__(self, name, tuple(tuple(row) for row in getattr(self, name)))
        for name in ("head_width", "hidden", "activation"):
            given = getattr(self, name)
            require(len(given) == len(self.heads), name, given, f"one entry for each of the {len(self.heads)} layers")
        for widths, kinds in zip(self.hidden, self.activation):
            require(len(widths) == len(kinds), "activation", kinds, f"one name for each of the {len(widths)} widths")
        named = len(self.channels) in (0, self.width)
        require(named, "channels", self.channels, f"one name for each of the {self.width} coordinates")

    @property
    def layers(self) -> int:
        return len(self.heads)


def activate(kind: str, x: Float[Tensor, "*lead width"]) -> Float[Tensor, "*lead out"]:
    """Apply a named activation; "max:KxG" makes each of the first G groups of K neighbours its maximum."""
    if kind == "sine":
        return x.sin()
    if kind.startswith("max:"):
        size, groups = (int(part) for part in kind[4:].split("x"))
        pooled = x[..., : size * groups].unflatten(-1, (groups, size)).amax(-1)
        return torch.cat([pooled, x[..., size * groups :]], -1)
    return ACTIVATIONS[choice("activation", kind, ("sine", "max:…", *ACTIVATIONS))](x)


def _activate_in_place(kind: str, x: Float[Tensor, "*lead width"]) -> Float[Tensor, "*lead out"]:
    return x.relu_() if kind == "relu" else activate(kind, x)


def _after(kind: str, width: int) -> int:
    """The width after an activation of `width` units."""
    if kind.startswith("max:"):
        size, groups = (int(part) for part in kind[4:].split("x"))
        return width - size * groups + groups
    return width


class TheoryAttention(nn.Module):
    """Σ_h softmax(X Wq Wkᵀ Xᵀ) X Wv Wc over heads, causal, without scale factor and without biases.

    `keep` says for each coordinate whether the residual is added (1) or the coordinate is overwritten (0).
    """

    keep: Tensor

    def __init__(self, width: int, heads: int, head_width: int, kind: str) -> None:
        super().__init__()
        self.kind = kind
        scale = width**-0.5
        self.query = nn.Parameter(scale * torch.randn(heads, width, head_width))
        self.key = nn.Parameter(scale * torch.randn(heads, width, head_width))
        self.value = nn.Parameter(scale * torch.randn(heads, width, head_width))
        self.output = nn.Parameter(scale * torch.randn(heads, head_width, width))
        self.register_buffer("keep", torch.ones(width))
        self.scores, self.pattern, self.z = HookPoint(), HookPoint(), HookPoint()

    def forward(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        if len(self.query) == 0:
            return x * self.keep
        hooked = self.scores.hooked or self.pattern.hooked or self.z.hooked
        if torch.is_grad_enabled() or hooked:
            return x * self.keep + self._attend(x)
        if self._same_for_all(x):
            return x * self.keep + self._attend_at_once(x)
        rows = _rows(x.device, len(self.query) * x.shape[1] ** 2)
        return torch.cat([part * self.keep + self._attend(part) for part in x.split(rows)])

    def _same_for_all(self, x: Tensor) -> bool:
        """Whether queries and keys read only coordinates that are equal in all examples, such as positions."""
        read = (self.query.abs().sum((0, 2)) + self.key.abs().sum((0, 2))) > 0
        seen = x[..., read]
        return bool((seen == seen[:1]).all())

    def _attend(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        query, key, value = (torch.einsum("btd,hdk->bhtk", x, w) for w in (self.query, self.key, self.value))
        pattern = self.pattern(self._pattern(self.scores(query @ key.mT)))
        return torch.einsum("bhtk,hkd->btd", self.z(pattern @ value), self.output)

    def _attend_at_once(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        """The same when one pattern serves all examples: their values lie side by side in one product per head."""
        pattern = self._pattern((x[0] @ self.query) @ (x[0] @ self.key).mT)
        by_time = x.transpose(0, 1).contiguous()
        result = torch.zeros_like(by_time)
        for head in range(len(pattern)):
            value = by_time @ self.value[head]
            z = (pattern[head] @ value.flatten(1)).view_as(value)
            result += z @ self.output[head]
        return result.transpose(0, 1)

    def _pattern(self, scores: Float[Tensor, "*lead query key"]) -> Tensor:
        return attention_pattern(scores, causal_mask(scores), kind="softmax" if self.kind == "softmax" else "latest")


def _rows(device: torch.device, numbers: int) -> int:
    """How many examples, each with an intermediate result of that many numbers, are computed at once."""
    return max(1, CHUNK.get(device.type, CHUNK["cuda"]) // numbers)


class TheoryFeedForward(nn.Module):
    """x ↦ keep ⊙ x + W_L φ(… φ(W₁ x + b₁) …) + b_L, the same at every position."""

    keep: Tensor

    def __init__(self, width: int, hidden: tuple[int, ...], kinds: tuple[str, ...]) -> None:
        super().__init__()
        self.kinds = kinds
        ins = [width, *(_after(kind, size) for kind, size in zip(kinds, hidden))]
        outs = [*hidden, width]
        self.maps = module_list(Linear(i, o) for i, o in zip(ins, outs))
        self.hidden = module_list(HookPoint() for _ in hidden)
        self.register_buffer("keep", torch.ones(width))
        self._compressed: dict[int, tuple[tuple[object, ...], Tensor | None]] = {}

    def forward(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        if torch.is_grad_enabled() or any(point.hooked for point in self.hidden):
            return x * self.keep + self._apply_maps(x)
        rows = _rows(x.device, x.shape[1] * max(len(linear.weight) for linear in self.maps))
        sparse = any(self._sparse(linear) is not None for linear in self.maps)
        # Nothing is recorded and no gradient is needed: hidden units may change in place.
        run = self._apply_sparse if sparse else partial(self._apply_maps, apply=_activate_in_place)
        return torch.cat([part * self.keep + run(part) for part in x.split(rows)])

    def _apply_maps(self, x: Tensor, apply: Callable[[str, Tensor], Tensor] = activate) -> Tensor:
        for linear, kind, point in zip(self.maps, self.kinds, self.hidden):
            x = point(apply(kind, linear(x)))
        return self.maps[-1](x)

    def _apply_sparse(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        """The same with units first and positions second, the layout of sparse products."""
        y = x.flatten(0, 1).mT.contiguous()
        for linear, kind in zip(self.maps, (*self.kinds, "identity")):
            sparse = self._sparse(linear)
            y = linear.weight @ y if sparse is None else torch.sparse.mm(sparse, y)
            if linear.bias is not None:
                y += linear.bias.unsqueeze(1)
            y = _activate_in_place(kind, y.mT).mT
        return y.mT.view_as(x)

    def _sparse(self, linear: Linear) -> Tensor | None:
        """The weights in compressed rows when they are large and nearly all zero, as those of tables are."""
        weight = linear.weight.detach()
        if weight.numel() < SPARSE_FROM:
            return None
        key = (weight.data_ptr(), weight._version, weight.device, weight.dtype)
        found = self._compressed.get(id(linear))
        if found is None or found[0] != key:
            found = (key, _compress(weight))
            self._compressed[id(linear)] = found
        return found[1]


def _compress(matrix: Float[Tensor, "row column"]) -> Tensor | None:
    if int(matrix.count_nonzero()) >= SPARSE_BELOW * matrix.numel():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls compressed rows a beta feature
        return matrix.to_sparse_csr()


class TheoryLayer(nn.Module):
    """Attention, then the feed-forward network."""

    def __init__(self, config: TheoryTransformerConfig, depth: int) -> None:
        super().__init__()
        self.attention = TheoryAttention(config.width, config.heads[depth], config.head_width[depth], config.attention)
        self.resid_mid = HookPoint()
        self.has_mlp = len(config.hidden[depth]) > 0
        if self.has_mlp:
            self.mlp = TheoryFeedForward(config.width, config.hidden[depth], config.activation[depth])
        self.resid_post = HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        x = self.resid_mid(self.attention(x))
        return self.resid_post(self.mlp(x) if self.has_mlp else x)


@register("models")
class TheoryTransformer(Model):
    """Causal attention and ReLU networks without norm or scale, each coordinate's residual chosen: for constructions.

    f = (id + mlp_L) ∘ (id + attn_L) ∘ … ∘ (id + attn_1) ∘ (id + P); heads are summed, not concatenated. Anchor tokens
    may precede the word; logits are given for the word only. Liu, Ash, Goel, Krishnamurthy & Zhang 2023.

    When no gradient is needed, attention that depends on positions only is computed once for all examples.
    Activations: `embed`, `layers.i.attention.{scores,pattern,z}`, `layers.i.resid_mid`, `layers.i.mlp.hidden.j`,
    `layers.i.resid_post`, `logits`; positions of the anchors included.
    """

    config: TheoryTransformerConfig

    @configured(TheoryTransformerConfig)
    def __init__(self, config: TheoryTransformerConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Parameter(0.1 * torch.randn(config.vocab, config.width))
        self.anchors = nn.Parameter(0.1 * torch.randn(config.prefix, config.width))
        self.position = nn.Parameter(0.1 * torch.randn(config.length, config.width))
        self.embed = HookPoint()
        self.layers = module_list(TheoryLayer(config, depth) for depth in range(config.layers))
        self.readout = Linear(config.width, config.outputs)
        self.logits = HookPoint()
        self.to(getattr(torch, config.precision))

    def forward(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead time outputs"]:
        config, lead, time = self.config, inputs.shape[:-1], inputs.shape[-1]
        require(time <= config.length, "sequence length", time, f"at most {config.length}", "compile a longer circuit")
        words = self.embedding[inputs.reshape(-1, time)] + self.position[:time]
        x = self.embed(torch.cat([self.anchors.expand(len(words), -1, -1), words], 1))
        for layer in self.layers:
            x = layer(x)
        logits = self.readout(x[:, config.prefix :])
        return self.logits(logits.view(*lead, time, config.outputs))
