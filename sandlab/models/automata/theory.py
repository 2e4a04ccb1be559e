"""The transformer of the constructions: plain attention, ReLU networks, no norms; every weight can be set by hand."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, integer, require
from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import HookPoint, Linear
from sandlab.registry import register

__all__ = ["TheoryTransformer", "TheoryTransformerConfig", "activate"]

# So many numbers lie between two steps when nothing is recorded and no gradient is asked for: on a processor what its
# cache holds, on a GPU what keeps it busy.
CHUNK = {"cpu": 1 << 17, "cuda": 1 << 27}
SPARSE_FROM, SPARSE_BELOW = 50_000, 0.02


@dataclass(frozen=True)
class TheoryTransformerConfig(Config):
    """Options of the theory transformer.

    vocab, length    letters; longest word
    outputs          classes of the readout
    width            d, coordinates of the stream
    heads            heads of each layer (0: the layer has no attention)
    head_width       k of each layer, the same for scores and values
    hidden           widths inside the feed-forward block of each layer (none: the layer has no such block)
    activation       for each of these widths: "relu", "sine", …, or "max:2x5" (see `activate`)
    prefix           anchor tokens before the word, with vectors of their own
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
        for name in ("vocab", "length", "outputs", "width"):
            integer(name, getattr(self, name), 1)
        integer("prefix", self.prefix, 0)
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
    """How many numbers an activation makes of `width` ones."""
    if kind.startswith("max:"):
        size, groups = (int(part) for part in kind[4:].split("x"))
        return width - size * groups + groups
    return width


class TheoryAttention(nn.Module):
    """Σ_h softmax(X Wq Wkᵀ Xᵀ) X Wv Wc over heads, causal, without scale factor and without biases.

    What goes on unchanged beside it is set coordinate by coordinate in `keep` (1: residual, 0: overwritten).
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
        watched = any(point._forward_hooks for point in (self.scores, self.pattern, self.z))
        if torch.is_grad_enabled() or watched:
            return x * self.keep + self._attend(x)
        if self._same_for_all(x):
            return x * self.keep + self._attend_alike(x)
        rows = _rows(x.device, len(self.query) * x.shape[1] ** 2)
        return torch.cat([part * self.keep + self._attend(part) for part in x.split(rows)])

    def _same_for_all(self, x: Tensor) -> bool:
        """Whether queries and keys read only coordinates that are equal in all examples, such as positions."""
        read = (self.query.abs().sum((0, 2)) + self.key.abs().sum((0, 2))) > 0
        seen = x[..., read]
        return bool((seen == seen[:1]).all())

    def _attend(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        query, key, value = (torch.einsum("btd,hdk->bhtk", x, w) for w in (self.query, self.key, self.value))
        scores = self.scores(query @ key.mT)
        pattern = self.pattern(self._normalise(scores))
        return torch.einsum("bhtk,hkd->btd", self.z(pattern @ value), self.output)

    def _attend_alike(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        """The same when one pattern serves all examples: their values lie side by side in one product per head."""
        pattern = self._normalise((x[0] @ self.query) @ (x[0] @ self.key).mT)
        by_time = x.transpose(0, 1).contiguous()
        result = torch.zeros_like(by_time)
        for head in range(len(pattern)):
            value = by_time @ self.value[head]
            mixed = (pattern[head] @ value.flatten(1)).view_as(value)
            result += mixed @ self.output[head]
        return result.transpose(0, 1)

    def _normalise(self, scores: Float[Tensor, "*lead query key"]) -> Tensor:
        future = _future(scores.shape[-1], scores.device)
        scores = scores.masked_fill(future, -torch.inf)
        if self.kind == "softmax":
            return scores.softmax(-1)
        # The latest of the largest: argmax takes the first, so the keys are read backwards.
        latest = scores.shape[-1] - 1 - scores.flip(-1).argmax(-1)
        return nn.functional.one_hot(latest, scores.shape[-1]).to(scores.dtype)


def _few_entries(matrix: Float[Tensor, "row column"]) -> Tensor:
    """The matrix in compressed rows when it is large and nearly all of it is 0, as that of a table is."""
    if matrix.numel() < SPARSE_FROM or int(matrix.count_nonzero()) >= SPARSE_BELOW * matrix.numel():
        return matrix
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls compressed rows a beta feature
        return matrix.to_sparse_csr()


def _rows(device: torch.device, numbers: int) -> int:
    """How many examples of so many numbers each go through at once."""
    return max(1, CHUNK.get(device.type, CHUNK["cuda"]) // numbers)


def _future(time: int, device: torch.device) -> Bool[Tensor, "query key"]:
    return torch.ones(time, time, dtype=torch.bool, device=device).triu(1)


class TheoryFeedForward(nn.Module):
    """x ↦ keep ⊙ x + W_L φ(… φ(W₁ x + b₁) …) + b_L, the same at every position."""

    keep: Tensor

    def __init__(self, width: int, hidden: tuple[int, ...], kinds: tuple[str, ...]) -> None:
        super().__init__()
        self.kinds = kinds
        ins = [width, *(_after(kind, size) for kind, size in zip(kinds, hidden))]
        outs = [*hidden, width]
        self.maps = nn.ModuleList(Linear(i, o) for i, o in zip(ins, outs))
        self.hidden = nn.ModuleList(HookPoint() for _ in hidden)
        self.register_buffer("keep", torch.ones(width))
        self._compressed: dict[int, tuple[Any, Tensor | None]] = {}

    def forward(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        if torch.is_grad_enabled() or any(point._forward_hooks for point in self.hidden):
            return x * self.keep + self._apply_maps(x)
        widest = max(len(linear.weight) for linear in self.maps)  # type: ignore[arg-type]
        rows = _rows(x.device, x.shape[1] * widest)
        run = self._apply_sparse if any(self._sparse(linear) is not None for linear in self.maps) else self._apply_plain
        return torch.cat([part * self.keep + run(part) for part in x.split(rows)])

    def _apply_maps(self, x: Tensor) -> Tensor:
        for linear, kind, point in zip(self.maps, self.kinds, self.hidden):
            x = point(activate(kind, linear(x)))
        return self.maps[-1](x)

    def _apply_plain(self, x: Tensor) -> Tensor:
        """The same when nobody looks at the hidden units and no gradient is wanted: they are changed in place."""
        for linear, kind in zip(self.maps, self.kinds):
            x = _activate_in_place(kind, linear(x))
        return self.maps[-1](x)

    def _apply_sparse(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        """The same with units first and positions second, the layout that sparse products want."""
        y = x.flatten(0, 1).mT.contiguous()
        for place, linear in enumerate(self.maps):
            sparse = self._sparse(linear)
            weight: Any = linear.weight
            bias: Any = linear.bias
            y = torch.sparse.mm(sparse, y) if sparse is not None else weight @ y
            y += bias.unsqueeze(1)
            if place < len(self.kinds):
                y = _activate_in_place(self.kinds[place], y.mT).mT
        return y.mT.view_as(x)

    def _sparse(self, linear: nn.Module) -> Tensor | None:
        """The weights in compressed rows when they are large and nearly all zero, as those of tables are."""
        weight: Tensor = linear.weight.detach()  # type: ignore[assignment,operator]
        if weight.numel() < SPARSE_FROM:
            return None
        key = (weight.data_ptr(), weight._version, weight.device, weight.dtype)
        found = self._compressed.get(id(linear))
        if found is None or found[0] != key:
            sparse = _few_entries(weight)
            found = (key, None if sparse is weight else sparse)
            self._compressed[id(linear)] = found
        return found[1]


class TheoryLayer(nn.Module):
    """Attention, then the feed-forward network."""

    def __init__(self, config: TheoryTransformerConfig, place: int) -> None:
        super().__init__()
        self.attention = TheoryAttention(config.width, config.heads[place], config.head_width[place], config.attention)
        self.resid_mid = HookPoint()
        self.has_mlp = len(config.hidden[place]) > 0
        if self.has_mlp:
            self.mlp = TheoryFeedForward(config.width, config.hidden[place], config.activation[place])
        self.resid_post = HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        x = self.resid_mid(self.attention(x))
        return self.resid_post(self.mlp(x) if self.has_mlp else x)


@register("models")
class TheoryTransformer(Model):
    """Causal attention and ReLU networks with no norm, no scale and a chosen residual: what constructions are made of.

    f = (id + mlp_L) ∘ (id + attn_L) ∘ … ∘ (id + attn_1) ∘ (id + P); heads are summed, not concatenated. Anchor tokens
    may stand before the word; logits are given for the word alone. Liu, Ash, Goel, Krishnamurthy & Zhang 2023.

    When no gradient is asked for, attention that depends on positions only is computed once for all examples.
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
        self.layers = nn.ModuleList(TheoryLayer(config, place) for place in range(config.layers))
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
