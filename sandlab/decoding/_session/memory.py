"""What was computed about prefixes, kept while there is room: the longest unused goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from torch import Tensor

__all__ = ["Memory"]


class Memory:
    """Tensors by key, at most `room` bytes of them; what was not asked for the longest time is forgotten."""

    def __init__(self, room: int) -> None:
        self.room, self.used = room, 0
        self.kept: OrderedDict[Hashable, Tensor] = OrderedDict()

    def get(self, key: Hashable) -> Tensor | None:
        if key in self.kept:
            self.kept.move_to_end(key)
        return self.kept.get(key)

    def put(self, key: Hashable, value: Tensor) -> None:
        # A row of a larger tensor would keep all of it alive.
        self.kept[key] = value.clone()
        self.used += _bytes(value)
        while self.used > self.room and self.kept:
            _, oldest = self.kept.popitem(last=False)
            self.used -= _bytes(oldest)


def _bytes(value: Tensor) -> int:
    return value.numel() * value.element_size()
