"""Keys and values of a batch in which every row has its own length, as the caches of transformers see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["RowCache", "beside"]


class RowCache:
    """One buffer of keys and one of values per layer; the tokens being read stand at `places` of their rows."""

    def __init__(self, rows: int, capacity: int, device: torch.device) -> None:
        self.rows, self.capacity, self.device = rows, capacity, device
        self.places: Int[Tensor, "row new"] = torch.zeros(rows, 0, dtype=torch.long, device=device)
        self.reach = 0
        self.lengths = torch.zeros(rows, dtype=torch.long, device=device)
        self.texts = torch.zeros(rows, capacity, dtype=torch.long, device=device)
        self.slots: list[RowSlot] = []
        self.shown: Any = None
        self.aligned = False

    def select(self, rows: Int[Tensor, "chosen"]) -> RowCache:
        chosen = RowCache(len(rows), self.capacity, self.device)
        chosen.texts = self.texts[rows]
        # All rows share their buffers: whatever is read into them stands behind what was read before, or is the same.
        shared = torch.equal(rows, torch.arange(self.rows, device=rows.device))
        kept = slice(None) if shared else rows
        chosen.slots = [RowSlot(chosen, slot.keys[kept], slot.values[kept]) for slot in self.slots]
        return chosen

    def close(self) -> None:
        """Let go of the buffers at once: slots and cache know each other, and would wait for the collector."""
        self.slots, self.shown = [], None

    def for_transformers(self) -> Any:
        if self.shown is None:
            self.shown = _for_transformers(
                lambda layer, keys, values: self.slot(layer, keys, values).extend(keys, values),
                lambda: (self.reach - self.places.shape[1], self.reach),
            )
        return self.shown

    def slot(self, layer: int, keys: Tensor, values: Tensor) -> RowSlot:
        while len(self.slots) <= layer:
            shape = (self.rows, keys.shape[1], self.capacity)
            self.slots.append(
                RowSlot(self, keys.new_zeros(*shape, keys.shape[-1]), values.new_zeros(*shape, values.shape[-1]))
            )
        return self.slots[layer]


class RowSlot:
    def __init__(self, cache: RowCache, keys: Float[Tensor, "row head place dim"], values: Tensor) -> None:
        self.cache, self.keys, self.values = cache, keys, values

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the new keys and values at their rows' places; everything up to the furthest place is handed back."""
        reach = self.cache.reach
        if self.cache.aligned:
            new = keys.shape[2]
            self.keys.narrow(2, reach - new, new).copy_(keys)
            self.values.narrow(2, reach - new, new).copy_(values)
        else:
            index = self.cache.places[:, None, :, None]
            self.keys.scatter_(2, index.expand_as(keys), keys)
            self.values.scatter_(2, index.expand_as(values), values)
        return self.keys.narrow(2, 0, reach), self.values.narrow(2, 0, reach)


def beside(cache: RowCache, row: int, known: int) -> Any:
    """A cache that shows one row's first tokens and then whatever is being read, and keeps nothing."""

    def extend(layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        slot = cache.slots[layer]
        before = slot.keys[row : row + 1, :, :known], slot.values[row : row + 1, :, :known]
        return torch.cat([before[0], keys], 2), torch.cat([before[1], values], 2)

    return _for_transformers(extend, lambda: (known, known))


def _for_transformers(
    extend: Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]], reach: Callable[[], tuple[int, int]]
) -> Any:
    """What the library calls: `update` per layer; lengths are only asked for masks."""
    from transformers.cache_utils import Cache

    class Rows(Cache):
        def __init__(self) -> None:
            super().__init__(layers=[])

        def update(
            self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: object, **__: object
        ) -> tuple[Tensor, Tensor]:
            return extend(layer_idx, key_states, value_states)

        def get_seq_length(self, layer_idx: int = 0) -> int:
            return reach()[0]

        def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:
            return reach()[1], 0

    return Rows()
