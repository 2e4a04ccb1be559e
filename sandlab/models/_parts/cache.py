"""Keys and values of the tokens read so far, so that decoding computes each token once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import BadInput, require
from sandlab.models.attention import Attention

__all__ = ["GrowingSlot", "KeyValueCache"]


class KeyValueCache:
    """One buffer of keys and one of values per attention layer; every row (sequence) has its own length.

    Made by `Transformer.start_cache` and filled by `model(tokens, cache=cache)`, which puts the new tokens of row b at
    positions lengths[b], lengths[b] + 1, … For decoding only: there are no gradients.
    """

    def __init__(self, batch: int, capacity: int, attentions: Sequence[Attention]) -> None:
        weights = [attention.value.weight for attention in attentions]
        if any(weight.ndim != 2 for weight in weights):
            raise BadInput("a cache holds the sequences of one model: take `population.member(i)`")
        device = weights[0].device if weights else torch.device("cpu")
        self.capacity = capacity
        self.lengths = torch.zeros(batch, dtype=torch.long, device=device)
        self.positions = torch.zeros(batch, 0, dtype=torch.long, device=device)
        self.slots = [
            _RowSlot(
                self,
                weight.new_zeros(batch, attention.heads, capacity, attention.key.weight.shape[0] // attention.heads),
                weight.new_zeros(batch, attention.heads, capacity, weight.shape[0] // attention.heads),
            )
            for attention, weight in zip(attentions, weights)
        ]
        self.reach = 0  # no row is longer than this; a plain number, so that growing does not wait for the device

    def grow(self, tokens: Int[Tensor, "batch new"]) -> Sequence[_RowSlot]:
        """Make room for the new tokens at the end of every row; each layer's slot then takes its keys and values."""
        rows = len(self.lengths)
        fits = tokens.ndim == 2 and tokens.shape[0] == rows and tokens.shape[1] >= 1
        require(fits, "inputs", f"shape {tuple(tokens.shape)}", f"({rows}, new tokens) with a cache of {rows} rows")
        new = tokens.shape[1]
        if self.reach + new > self.capacity:
            self.reach = int(self.lengths.max())
        if self.reach + new > self.capacity:
            raise BadInput(
                f"the cache holds {self.capacity} tokens and its longest row has {self.reach}: {new} more do not fit; "
                "start it with a larger capacity or roll back"
            )
        self.positions = self.lengths.unsqueeze(-1) + torch.arange(new, device=self.lengths.device)
        self.lengths = self.lengths + new
        self.reach += new
        for slot in self.slots:
            slot.positions = self.positions.unsqueeze(1)
        return self.slots

    def rollback(self, lengths: Int[Tensor, "batch"] | Sequence[int]) -> None:
        """Shorten every row to the given length."""
        shorter = torch.as_tensor(lengths, dtype=torch.long, device=self.lengths.device)
        require(shorter.shape == self.lengths.shape, "lengths", tuple(shorter.shape), f"{len(self.lengths)} numbers")
        inside = bool(((shorter >= 0) & (shorter <= self.lengths)).all())
        require(inside, "lengths", shorter.tolist(), f"between 0 and the rows' lengths {self.lengths.tolist()}")
        self.lengths = shorter.clone()
        self.reach = int(shorter.max())

    def select(self, rows: Int[Tensor, "chosen"] | Sequence[int]) -> KeyValueCache:
        """A new cache whose rows are copies of the chosen ones, for branching and resampling; rows may repeat."""
        index = torch.as_tensor(rows, dtype=torch.long, device=self.lengths.device)
        chosen = KeyValueCache(len(index), self.capacity, ())
        chosen.lengths, chosen.positions = self.lengths[index], self.positions[index]
        chosen.reach = self.reach
        chosen.slots = [_RowSlot(chosen, slot.keys[index], slot.values[index]) for slot in self.slots]
        return chosen

    def __repr__(self) -> str:
        return f"KeyValueCache(lengths={self.lengths.tolist()}, capacity={self.capacity}, layers={len(self.slots)})"


class _RowSlot:
    """One layer's buffers; `positions` (batch, 1, new) are those of the tokens being read."""

    positions: Tensor

    def __init__(self, cache: KeyValueCache, keys: Tensor, values: Tensor) -> None:
        self.cache, self.keys, self.values = cache, keys, values

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        index = self.positions.unsqueeze(-1)
        self.keys.scatter_(2, index.expand_as(key), key)
        self.values.scatter_(2, index.expand_as(value), value)
        reach = self.cache.reach
        return self.keys[:, :, :reach], self.values[:, :, :reach]


class GrowingSlot:
    """Keys and values of one layer for sequences that all have the same length; differentiable, any leading axes."""

    def __init__(self, state: tuple[Tensor, ...] | None, new: Float[Tensor, "*lead time width"]) -> None:
        self.state = state or ()
        self.before = self.state[0].shape[-2] if state else 0
        self.positions = torch.arange(self.before, self.before + new.shape[-2], device=new.device)

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if self.state:
            key, value = torch.cat([self.state[0], key], -2), torch.cat([self.state[1], value], -2)
        self.state = (key, value)
        return key, value
