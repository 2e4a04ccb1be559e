"""A pool of buffers: allocating fresh memory pages costs more than filling them."""

from __future__ import annotations

import weakref

import numpy as np
import torch
from torch import Tensor

__all__ = ["BufferPool"]

MOST_KEPT = 4
SMALLEST = 1 << 18


class BufferPool:
    """Hands out int64 tensors on the CPU, and reuses their memory once no tensor refers to it any more."""

    def __init__(self) -> None:
        self.kept: list[tuple[np.ndarray, weakref.ref[np.ndarray]]] = []

    def empty(self, rows: int, columns: int) -> Tensor:
        """An uninitialised (rows, columns) tensor."""
        size = rows * columns
        if size < SMALLEST:
            return torch.empty(rows, columns, dtype=torch.int64)
        for slot, (memory, view) in enumerate(self.kept):
            if memory.size == size and view() is None:
                return self._hand_out(slot, memory).view(rows, columns)
        self.kept = [*self.kept[-(MOST_KEPT - 1) :], (_NOTHING, weakref.ref(_NOTHING))]
        return self._hand_out(-1, np.empty(size, dtype=np.int64)).view(rows, columns)

    def _hand_out(self, slot: int, memory: np.ndarray) -> Tensor:
        # A tensor keeps the array it was made from alive for as long as it or a view of it lives. So a fresh view of
        # the memory is handed out, and the pool holds only a weak reference to that view.
        view = memory[:]
        self.kept[slot] = (memory, weakref.ref(view))
        return torch.from_numpy(view)


_NOTHING = np.empty(0, dtype=np.int64)
