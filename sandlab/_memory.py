"""Memory: what needs more than the machine has is refused with the number of bytes, before it is made."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sandlab.errors import BadInput

__all__ = ["NO_ROOM", "available_bytes", "refuse_beyond_memory", "size_in", "sized"]

_BYTES = re.compile(r"allocate (?:memory: you tried to allocate )?(\d+) bytes")
NO_ROOM = (
    "can't allocate memory",
    "out of memory",
    "Storage size calculation",
    "Unable to allocate",
    "Maximum allowed",
)
_MAKERS = {"empty", "zeros", "ones", "full", "rand", "randn", "randint", "eye", "tril", "triu"}


@contextmanager
def sized(name: str, most: int | None = None) -> Iterator[None]:
    """Refuse tensors of more than `most` bytes (None: than are free) before they are made."""
    from torch.overrides import TorchFunctionMode

    class Watch(TorchFunctionMode):
        def __torch_function__(
            self, call: Callable[..., object], kinds: object, args: Any = (), options: Any = None
        ) -> object:
            if getattr(call, "__name__", "") in _MAKERS:
                refuse_beyond_memory(name, 4 * _count(args, options or {}), most)
            return call(*args, **(options or {}))

    try:
        with Watch():
            yield
    except (RuntimeError, MemoryError, OverflowError) as problem:
        text = str(problem)
        if isinstance(problem, MemoryError) or any(words in text for words in NO_ROOM):  # small each, large together
            raise BadInput(f"{name} is too large for this machine{size_in(text)}") from problem
        if isinstance(problem, NotImplementedError) or "CUDA" in text:
            raise
        raise BadInput(f"{name} cannot be made with these options: {(text.splitlines() or [''])[0][:200]}") from problem


def refuse_beyond_memory(name: str, size: float, most: int | None = None) -> None:
    """Refuse what needs more bytes than the machine has free, or than `most`."""
    if most is not None and size > most:
        raise BadInput(f"{name} needs {size:,.0f} bytes, and no more than {most:,} are expected")
    if size >= 2**28 and size > (free := available_bytes()):
        raise BadInput(f"{name} needs {size:,.0f} bytes, and {free:,} are free: take smaller sizes")


def available_bytes() -> int:
    """Memory of this machine that is free, or what the process may still take."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        with open("/proc/meminfo", encoding="utf-8") as file:
            free = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
        return min(free, limit) if limit > 0 else free
    except (OSError, StopIteration, ImportError):  # not Linux
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))


def size_in(text: str) -> str:
    """The number of bytes that an error speaks of, or its first line."""
    found = _BYTES.search(text)
    size = f"{int(found[1]):,} bytes" if found else text.splitlines()[0][:120] if text else ""
    return f": it needs {size}" if found else f" ({size})" if size else ""


def _count(args: Sequence[object], options: Mapping[str, object]) -> float:
    """Elements of the tensor that a factory is asked for."""
    sizes = options.get("size", args[0] if args and isinstance(args[0], (tuple, list)) else args)
    sizes = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
    numbers = [float(size) for size in sizes if isinstance(size, int)]
    return math.prod(numbers) if numbers else 0.0
