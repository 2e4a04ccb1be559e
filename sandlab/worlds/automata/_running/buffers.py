"""Memory that is used again once nobody holds it: fresh pages cost more than the numbers written into them."""

from __future__ import annotations

import weakref

import numpy as np
import torch
from torch import Tensor

__all__ = ["Buffers"]

MOST_KEPT = 4
SMALLEST = 1 << 18


class Buffers:
    """Hands out int64 tensors on the processor; memory is handed out again when no tensor refers to it any more."""

    def __init__(self) -> None:
        self.kept: list[tuple[np.ndarray, weakref.ref[np.ndarray]]] = []

    def empty(self, rows: int, columns: int) -> Tensor:
        """An uninitialised (rows, columns) tensor."""
        size = rows * columns
        if size < SMALLEST:
            return torch.empty(rows, columns, dtype=torch.int64)
        for place, (memory, view) in enumerate(self.kept):
            if memory.size == size and view() is None:
                return self._hand_out(place, memory).view(rows, columns)
        self.kept = [*self.kept[-(MOST_KEPT - 1) :], (_NOTHING, weakref.ref(_NOTHING))]
        return self._hand_out(-1, np.empty(size, dtype=np.int64)).view(rows, columns)

    def _hand_out(self, place: int, memory: np.ndarray) -> Tensor:
        # A tensor keeps the array it was made from for as long as it or a view of it lives. So a fresh view of the
        # memory is given away, and only weakly remembered.
        view = memory[:]
        self.kept[place] = (memory, weakref.ref(view))
        return torch.from_numpy(view)


_NOTHING = np.empty(0, dtype=np.int64)
