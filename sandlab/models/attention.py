"""Attention: the masked core that every model uses, and the configurable multi-head layer around it."""

from __future__ import annotations

import math
from typing import Protocol

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sandlab.models.layers import HookPoint, Linear, align

__all__ = ["Attention", "Slot", "allowed_keys", "attention_pattern", "causal_mask", "rotate"]

MOST_BLOCKS = 2**16 - 1
"""Examples times heads that one launch of a fused kernel takes."""


def attention_pattern(
    scores: Float[Tensor, "*lead query key"],
    mask: Bool[Tensor, "*#lead query key"] | None = None,
    *,
    kind: str = "softmax",
    bias: Tensor | None = None,
) -> Float[Tensor, "*lead query key"]:
    """What each query gives to the keys that `mask` allows (None: to all), by scores + bias.

    kind  "softmax"; "linear": the scores themselves; "hard": equal weights on the largest scores; "latest": all weight
          on the last of the largest
    """
    if kind == "linear":
        scores = scores if bias is None else scores + bias
        return scores if mask is None else scores * mask
    if mask is not None:
        # Bias and mask in one addition, whose derivative costs nothing: the scores are the largest tensor here.
        bias = torch.where(mask, scores.new_zeros(()) if bias is None else bias, -torch.inf)
    scores = scores if bias is None else scores + bias
    if kind == "softmax":
        return scores.softmax(-1)
    if kind == "latest":
        # argmax takes the first of equals, so the keys are read backwards.
        latest = scores.shape[-1] - 1 - scores.flip(-1).argmax(-1)
        return F.one_hot(latest, scores.shape[-1]).to(scores.dtype)
    largest = (scores == scores.amax(-1, keepdim=True)).to(scores.dtype)
    return largest / largest.sum(-1, keepdim=True)


def causal_mask(scores: Float[Tensor, "*lead query key"]) -> Bool[Tensor, "query key"]:
    """The keys that do not lie ahead; the queries are the last of the positions."""
    queries, keys = scores.shape[-2:]
    return torch.ones(queries, keys, dtype=torch.bool, device=scores.device).tril(keys - queries)


class Slot(Protocol):
    """One attention layer's part of a key-value cache (see _parts/cache.py)."""

    positions: Tensor

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append the new keys and values and return all of them."""
        ...


def allowed_keys(
    queries: Int[Tensor, "*lead query"], keys: Int[Tensor, "key"], *, causal: bool, window: int | None
) -> Bool[Tensor, "*lead query key"]:
    """Which key positions each query position may attend to: not the future, not further back than the window."""
    distance = queries.unsqueeze(-1) - keys
    allowed = torch.ones_like(distance, dtype=torch.bool)
    if causal:
        allowed &= distance >= 0
    if window is not None:
        allowed &= distance.abs() < window
    return allowed


def rotate(x: Float[Tensor, "*lead time dim"], positions: Int[Tensor, "*#lead time"], base: float) -> Tensor:
    """Rotary encoding: turn each pair of coordinates (i, i + dim/2) by position · base^(−2i/dim)."""
    half = x.shape[-1] // 2
    # Angles in at least float32: half precision cannot distinguish positions beyond a few hundred.
    precise = torch.promote_types(x.dtype, torch.float32)
    frequency = base ** (-torch.arange(half, device=x.device, dtype=precise) / half)
    angle = positions.to(precise).unsqueeze(-1) * frequency
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half : 2 * half]
    turned = torch.cat([first * cos - second * sin, first * sin + second * cos], -1)
    return turned if x.shape[-1] % 2 == 0 else torch.cat([turned, x[..., -1:]], -1)


def _far_below(hidden: Tensor, scores: Tensor) -> Tensor:
    """A bias against hidden keys (…, 1, 1, key). Finite: a query that sees nothing else must not become NaN."""
    return (hidden.to(scores.dtype) * -1e9).unsqueeze(-2).unsqueeze(-2)


class SumOfHeads(nn.Module):
    """Σ_h x^(h): the sum of the heads' outputs."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, x: Float[Tensor, "*lead inner"]) -> Float[Tensor, "*lead width"]:
        return x.unflatten(-1, (self.heads, -1)).sum(-2)


class Attention(nn.Module):
    """softmax(x Wqᵀ Wk xᵀ · scale + bias) x Wvᵀ, heads side by side, then the output map.

    kind       "softmax", "linear" (scores used as they are) or "hard" (uniform over the largest scores)
    positions  "rotary", "relative" (a learned bias per head and distance) or "alibi" act here; others on the embedding
    output_map False: each head's value map writes into the stream itself (width to width) and the heads are summed
    average    the output map reads the mean of the heads, not all of them side by side
    fused      use torch's fused kernel when nothing inside is recorded (faster, but without second derivatives)
    """

    def __init__(
        self,
        width: int,
        heads: int,
        head_width: int,
        length: int,
        *,
        kind: str = "softmax",
        positions: str = "none",
        causal: bool = True,
        window: int | None = None,
        scale: float | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        rotary_base: float = 10000.0,
        output_map: bool = True,
        average: bool = False,
        std: float | None = None,
    ) -> None:
        super().__init__()
        inner = heads * head_width
        self.heads, self.head_width, self.length = heads, head_width, length
        self.kind, self.position_kind, self.causal, self.window = kind, positions, causal, window
        self.scale = 1 / math.sqrt(head_width) if scale is None else scale
        self.dropout, self.rotary_base = dropout, rotary_base
        self.fused = False
        self.query = Linear(width, inner, bias=bias, std=std)
        self.key = Linear(width, inner, bias=bias, std=std)
        self.value = Linear(width, inner if output_map else heads * width, bias=bias, std=std)
        self.scores, self.pattern, self.z = HookPoint(), HookPoint(), HookPoint()
        self.average, read = average, head_width if average else inner
        self.output = Linear(read, width, bias=bias, std=std) if output_map else SumOfHeads(heads)
        if positions == "relative":
            self.distance_bias = nn.Parameter(torch.zeros(heads, 2 * length - 1))

    def forward(
        self, x: Float[Tensor, "*lead time width"], slot: Slot | None = None, hidden: Tensor | None = None
    ) -> Float[Tensor, "*lead time width"]:
        """With a `slot` of a key-value cache, `x` continues the sequences in the cache; `hidden` keys are not seen."""
        query, key, value = (self._split(part(x)) for part in (self.query, self.key, self.value))
        positions = torch.arange(x.shape[-2], device=x.device) if slot is None else slot.positions
        if self.position_kind == "rotary":
            query, key = rotate(query, positions, self.rotary_base), rotate(key, positions, self.rotary_base)
        if slot is not None:
            z = self._explicit(query, *slot.extend(key, value), positions)
        elif self._can_fuse():
            z = self._fused(query, key, value, hidden)
        else:
            z = self._explicit(query, key, value, positions, hidden)
        return self.output(self.z(z.mean(-3) if self.average else z.transpose(-2, -3).flatten(-2)))

    def _explicit(
        self, query: Tensor, key: Tensor, value: Tensor, positions: Tensor, hidden: Tensor | None = None
    ) -> Tensor:
        keys = torch.arange(key.shape[-2], device=key.device)
        scores = (query * self.scale) @ key.mT  # the query is the smaller tensor to scale
        bias = self._position_bias(positions, keys, scores)
        if hidden is not None:
            bias = _far_below(hidden, scores) + (0.0 if bias is None else bias)
        if bias is not None and self.scores.hooked:
            scores, bias = scores + bias, None
        mask = allowed_keys(positions, keys, causal=self.causal, window=self.window)
        pattern = self.pattern(attention_pattern(self.scores(scores), mask, kind=self.kind, bias=bias))
        if self.dropout and self.training:
            pattern = F.dropout(pattern, self.dropout)
        return pattern @ value

    def _position_bias(self, positions: Int[Tensor, "*lead query"], keys: Tensor, scores: Tensor) -> Tensor | None:
        if self.position_kind not in ("alibi", "relative"):
            return None
        distance = positions.unsqueeze(-1) - keys
        if self.position_kind == "alibi":
            head = torch.arange(1, self.heads + 1, dtype=scores.dtype, device=scores.device)
            return -(2.0 ** (-8.0 * head / self.heads)).view(-1, 1, 1) * distance.abs()
        bias = self.distance_bias[..., distance + self.length - 1]
        if distance.ndim == 2:
            return align(bias, scores, 3)
        return bias.squeeze(-3).movedim(0, 1)  # a cache: (head, batch, 1, query, key)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(-2, -3)

    def _can_fuse(self) -> bool:
        hooked = self.scores.hooked or self.pattern.hooked
        plain = self.kind == "softmax" and self.window is None and self.position_kind not in ("relative", "alibi")
        return self.fused and plain and not hooked

    def _fused(self, query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None = None) -> Tensor:
        lead = query.shape[:-3]
        rows = [each.reshape(-1, *each.shape[-3:]) for each in (query, key, value)]
        if hidden is not None:
            rows.append(self._hiding(hidden.reshape(-1, hidden.shape[-1]), rows[0]))
        most = MOST_BLOCKS // query.shape[-3]
        parts = [self._attend(*part) for part in zip(*(each.split(most) for each in rows))]
        z = parts[0] if len(parts) == 1 else torch.cat(parts)
        return z.reshape(*lead, *z.shape[-3:])

    def _hiding(self, hidden: Tensor, query: Tensor) -> Tensor:
        """The bias of hidden keys, with the causal mask in it: the kernel takes one of the two.

        Not expanded: the kernel pads what it is given to a round length, and would copy an expanded bias whole.
        """
        bias, time = _far_below(hidden, query), query.shape[-2]
        if self.causal:
            bias = bias.masked_fill(~causal_mask(query.new_empty(time, time)), -torch.inf)
        return bias

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
        dropout, causal = self.dropout if self.training else 0.0, self.causal and bias is None
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=bias, dropout_p=dropout, is_causal=causal, scale=self.scale
        )
