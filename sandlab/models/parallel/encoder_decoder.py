"""An encoder and a decoder for translation: refining all positions at once, or writing one after another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, require
from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models._parts.transformer_layer import MLPBlock
from sandlab.models.attention import attention_pattern
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import Embedding, HookPoint, LayerNorm, Linear, Positions, align, linear, module_list
from sandlab.registry import register

__all__ = ["DecoderCache", "EncoderDecoder", "EncoderDecoderConfig"]

PAD = 0


@dataclass(frozen=True)
class EncoderDecoderConfig(Config):
    """Options of the encoder-decoder.

    vocab                  tokens of both languages; 0 is padding
    source_length          most tokens of a source; target_length of a translation
    layers, heads          layers of the encoder and of the decoder; attention heads
    width, mlp_width       coordinates of the stream; hidden units (default 4 · width)
    causal                 True: the decoder sees only what was written so far (autoregressive)
    positional_attention   in each decoder layer an attention whose queries and keys are the position vectors
    mlp                    activation of the feed-forward blocks
    dropout                rate on every residual branch
    """

    vocab: int
    source_length: int
    target_length: int
    layers: int = 2
    heads: int = 4
    width: int = 64
    mlp_width: int | None = None
    causal: bool = False
    positional_attention: bool = True
    mlp: str = "relu"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        self.check_integers("vocab", "source_length", "target_length", "layers", "heads", "width", "mlp_width")
        self.check_numbers("dropout", low=0.0, high=1.0)
        choice("mlp", self.mlp, tuple(ACTIVATIONS))
        require(self.width % self.heads == 0, "width", self.width, f"a multiple of heads ({self.heads})")
        fits = self.target_length <= self.vocab
        require(
            fits, "target_length", self.target_length, f"at most vocab ({self.vocab}): lengths are classes of a row"
        )


class CrossAttention(nn.Module):
    """Attention from one sequence to another with some keys ruled out; activations `pattern` and `z`.

    fused   use torch's fused kernel when the pattern is not recorded; on a GPU it always is
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale, self.fused = heads, 1 / math.sqrt(width // heads), False
        self.query, self.key = Linear(width, width), Linear(width, width)
        self.value, self.output = Linear(width, width), Linear(width, width)
        self.pattern, self.z = HookPoint(), HookPoint()

    def keys(self, x: Tensor, values: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Keys and values of a sequence, heads apart."""
        return self._split(self.key(x)), self._split(self.value(x if values is None else values))

    def forward(
        self, x: Float[Tensor, "*lead query width"], known: tuple[Tensor, Tensor], mask: Bool[Tensor, "*lead query key"]
    ) -> Float[Tensor, "*lead query width"]:
        key, value = known
        query, allowed = self._split(self.query(x)), mask.unsqueeze(-3)
        if (self.fused or x.is_cuda) and not self.pattern.hooked:
            mixed = self._fused(query, key, value, allowed)
        else:
            mixed = self.pattern(attention_pattern((query * self.scale) @ key.mT, allowed)) @ value
        return self.output(self.z(mixed.transpose(-2, -3).flatten(-2)))

    def _fused(self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor) -> Tensor:
        """The same by torch's kernel, for which members and examples are one axis."""
        lead = query.shape[:-3]
        first, second, third = (part.reshape(-1, *part.shape[-3:]) for part in (query, key, value))
        mask = allowed.expand(*lead, *allowed.shape[-3:]).reshape(-1, *allowed.shape[-3:])
        mixed = F.scaled_dot_product_attention(first, second, third, attn_mask=mask, scale=self.scale)
        return mixed.reshape(*lead, *mixed.shape[-3:])

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(-2, -3)


class EncoderLayer(nn.Module):
    """x + A(LN x), then x + MLP(LN x)."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.norm, self.attention = LayerNorm(config.width), CrossAttention(config.width, config.heads)
        self.mlp_norm = LayerNorm(config.width)
        self.mlp = MLPBlock(config.width, config.mlp_width or 4 * config.width, config.mlp, bias=True, std=None)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        normal = self.norm(x)
        x = x + self.drop(self.attention(normal, self.attention.keys(normal), mask))
        return x + self.drop(self.mlp(self.mlp_norm(x)))

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout) if self.dropout and self.training else x


class DecoderLayer(EncoderLayer):
    """Self-attention, positional attention, cross-attention to the source, feed-forward, each on its own branch."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__(config)
        self.cross_norm, self.cross = LayerNorm(config.width), CrossAttention(config.width, config.heads)
        self.placed = config.positional_attention
        if self.placed:
            self.place_norm, self.value_norm = LayerNorm(config.width), LayerNorm(config.width)
            self.place = CrossAttention(config.width, config.heads)

    def decode(
        self, x: Tensor, places: Tensor, mask: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor,
        memory: LayerMemory | None = None,
    ) -> Tensor:  # fmt: skip
        normal = self.norm(x)
        known = self.attention.keys(normal)
        known = known if memory is None else memory.extend("self", *known)
        x = x + self.drop(self.attention(normal, known, mask))
        if self.placed:
            where = self.place_norm(places)
            known = self.place.keys(where, self.value_norm(x))
            known = known if memory is None else memory.extend("place", *known)
            x = x + self.drop(self.place(where, known, mask))
        x = x + self.drop(self.cross(self.cross_norm(x), source, source_mask))
        return x + self.drop(self.mlp(self.mlp_norm(x)))


class LayerMemory:
    """Keys and values of what one decoder layer has read, by attention."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[Tensor, Tensor]] = {}

    def extend(self, name: str, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if name in self.kept:
            key, value = torch.cat([self.kept[name][0], key], -2), torch.cat([self.kept[name][1], value], -2)
        self.kept[name] = (key, value)
        return key, value


@dataclass
class DecoderCache:
    """An encoded source, and what the decoder has read of the translation (with `memories`)."""

    sources: list[tuple[Tensor, Tensor]]
    source_mask: Tensor
    length_logits: Tensor
    memories: list[LayerMemory] | None = None
    reach: int = 0

    def select(self, rows: Int[Tensor, "chosen"]) -> DecoderCache:
        """The same for some rows of the batch, which may repeat."""
        chosen = DecoderCache([(key[rows], value[rows]) for key, value in self.sources], self.source_mask[rows],
                              self.length_logits[rows], None, self.reach)  # fmt: skip
        if self.memories is not None:
            chosen.memories = [LayerMemory() for _ in self.memories]
            for new, old in zip(chosen.memories, self.memories):
                new.kept = {name: (key[rows], value[rows]) for name, (key, value) in old.kept.items()}
        return chosen


@register("models")
class EncoderDecoder(Model):
    """Encoder-decoder with learned positions, pre-norm, a length token before the source, tied embeddings.

    inputs are the source and the decoder's tokens side by side, (…, source_length + target_length). Logits have one
    row more than the target: row 0 is the predicted length (END counted), from the encoding of the length token times
    a table of lengths; rows 1 … are the tokens. Not causal, all positions are predicted at once (PaDIR, Li 2024, §4.2);
    causal, each from the tokens before it.

    Activations: `encoder.i.attention.pattern`, `decoder.i.{attention,place,cross}.pattern`, `logits`.
    """

    carries_members = True
    config: EncoderDecoderConfig

    @configured(EncoderDecoderConfig)
    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocab, config.width, std=config.width**-0.5)
        self.source_position = Positions(config.source_length, config.width, std=config.width**-0.5)
        self.position = Positions(config.target_length, config.width, std=config.width**-0.5)
        self.length_token = nn.Parameter(torch.randn(config.width) * config.width**-0.5)
        self.length_table = Embedding(config.target_length, config.width, std=config.width**-0.5)
        self.encoder = module_list(EncoderLayer(config) for _ in range(config.layers))
        self.decoder = module_list(DecoderLayer(config) for _ in range(config.layers))
        self.encoder_norm, self.decoder_norm = LayerNorm(config.width), LayerNorm(config.width)
        self.logits = HookPoint()

    def forward(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead rows vocab"]:
        split = self.config.source_length
        require(inputs.shape[-1] > split, "inputs", inputs.shape[-1], f"a source of {split} tokens and a target")
        cache = self.encode(inputs[..., :split])
        tokens = self.decode(cache, inputs[..., split:])
        lengths = F.pad(cache.length_logits, (0, self.config.vocab - self.config.target_length), value=-1e4)
        return self.logits(torch.cat([lengths.unsqueeze(-2), tokens], -2))

    def encode(self, source: Int[Tensor, "*lead source"], *, remember: bool = False) -> DecoderCache:
        """The source as the decoder's layers see it; with `remember`, ready for step-by-step decoding."""
        x = self.embedding(source)
        x = x + align(self.source_position(source.shape[-1]), x, 2)
        token = align(self.length_token, x, 1).expand(*x.shape[:-2], 1, -1)
        x = torch.cat([token, x], -2)
        mask = F.pad(source != PAD, (1, 0), value=True).unsqueeze(-2)
        for layer in self.encoder:
            x = layer(x, mask.expand(*mask.shape[:-2], x.shape[-2], -1))
        x = self.encoder_norm(x)
        lengths = linear(x[..., 0, :].unsqueeze(-2), self.length_table.weight).squeeze(-2)
        memories = [LayerMemory() for _ in self.decoder] if remember else None
        return DecoderCache([layer.cross.keys(x) for layer in self.decoder], mask, lengths, memories)

    def decode(self, cache: DecoderCache, tokens: Int[Tensor, "*lead target"]) -> Float[Tensor, "*lead target vocab"]:
        """Logits of every position; with a cache that remembers, the tokens continue those read before."""
        start, count = cache.reach, tokens.shape[-1]
        x = self.embedding(tokens)
        places = align(self.position.weight[..., start : start + count, :], x, 2).expand(x.shape)
        x, mask = x + places, self._mask(tokens, start)
        memories: Sequence[LayerMemory | None] = cache.memories or [None] * len(self.decoder)
        source_mask = cache.source_mask.expand(*cache.source_mask.shape[:-2], count, -1)
        for layer, source, memory in zip(self.decoder, cache.sources, memories):
            x = layer.decode(x, places, mask, source, source_mask, memory)
        cache.reach = start + count if cache.memories is not None else 0
        return linear(self.decoder_norm(x), self.embedding.weight)

    def _mask(self, tokens: Tensor, start: int) -> Bool[Tensor, "*lead query key"]:
        count = tokens.shape[-1]
        if not self.config.causal:
            # Padding is never a key; an empty sentence may look at its first place.
            keys = tokens != PAD
            keys = keys | (torch.arange(count, device=tokens.device) == 0)
            return keys.unsqueeze(-2).expand(*tokens.shape, count)
        seen = torch.ones(count, start + count, dtype=torch.bool, device=tokens.device).tril(start)
        return seen.expand(*tokens.shape[:-1], count, start + count)
