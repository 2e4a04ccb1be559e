"""Triton that is only pretended: its language on CPU tensors, as far as the kernels of the LSTM use it.

`loaded("pretended")` imports the kernels with this in Triton's place, `loaded("interpreted")` with Triton's own
interpreter. A kernel then runs as the Python function that it is, one program after another. Every place that is read
or written lies inside the tensor that the kernel was given, and none is written by two programs, or that is an error.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import itertools
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sandlab.models._parts import lstm_on_chip

KERNELS = "sandlab.models._parts.lstm_kernels"


def ways() -> list[str]:
    """How kernels can run here: Triton's interpreter (3.6) reads the end of a loop as only older numpys allow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(TypeError):
            int(np.ones(1))
            return ["pretended", *(["interpreted"] if importlib.util.find_spec("triton") else [])]
    return ["pretended"]


class Memory:
    """A tensor's numbers in a row, and which program has written each."""

    def __init__(self, tensor: Tensor) -> None:
        assert tensor.is_contiguous()
        self.numbers = tensor.view(-1)
        self.writer = torch.full(self.numbers.shape, -1)


class Pointer:
    """Places in memory."""

    def __init__(self, memory: Memory, places: Tensor) -> None:
        self.memory, self.places = memory, places

    def __add__(self, by: Any) -> Pointer:
        return Pointer(self.memory, self.places + by)

    def __sub__(self, by: Any) -> Pointer:
        return Pointer(self.memory, self.places - by)

    def inside(self, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Where the mask holds, and the places there."""
        places, mask = torch.broadcast_tensors(self.places, mask)
        found = places[mask]
        assert not found.numel() or (found.min() >= 0 and found.max() < len(self.memory.numbers)), "outside the tensor"
        return mask, found


class Kernel:
    """What `triton.jit` makes of a function; called by another kernel it is the function."""

    now: tuple[int, ...] = ()
    number = 0

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *values: Any) -> Any:
        return self.function(*values)

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def run(*values: Any, num_warps: int, **sizes: Any) -> None:
            memories = [Memory(each) if isinstance(each, Tensor) else each for each in values]
            for Kernel.number, Kernel.now in enumerate(itertools.product(*map(range, grid))):
                starts = [Pointer(m, torch.tensor(0)) if isinstance(m, Memory) else m for m in memories]
                self.function(*starts, **sizes)

        return run


def load(pointer: Pointer, mask: Tensor, other: float) -> Tensor:
    mask, places = pointer.inside(mask)
    found = torch.full(mask.shape, other, dtype=pointer.memory.numbers.dtype)
    found[mask] = pointer.memory.numbers[places]
    return found


def store(pointer: Pointer, value: Tensor, mask: Tensor) -> None:
    mask, places = pointer.inside(mask)
    writer = pointer.memory.writer[places]
    assert ((writer == -1) | (writer == Kernel.number)).all(), "two programs write to one place"
    pointer.memory.writer[places] = Kernel.number
    pointer.memory.numbers[places] = value.broadcast_to(mask.shape)[mask]


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    return Kernel if function is None else Kernel(function)


def language() -> types.ModuleType:
    """`triton.language`, on tensors of torch."""
    made: Any = types.ModuleType("triton.language")
    made.tensor, made.constexpr = Tensor, object
    made.float16, made.float32, made.int64 = torch.float16, torch.float32, torch.int64
    made.load, made.store = load, store
    made.program_id = lambda axis: torch.tensor(Kernel.now[axis])
    made.arange = torch.arange
    made.zeros = lambda shape, kind: torch.zeros(shape, dtype=kind)
    made.range = lambda end, num_stages: range(end)
    made.dot = lambda one, other, input_precision: one.float() @ other.float()
    made.max = torch.amax
    made.abs, made.maximum, made.sigmoid, made.where = torch.abs, torch.maximum, torch.sigmoid, torch.where
    return made


@contextlib.contextmanager
def loaded(way: str) -> Iterator[types.ModuleType]:
    """The kernels as Python functions, where the scan looks for them."""
    with pytest.MonkeyPatch.context() as patched:
        if way == "pretended":
            whole: Any = types.ModuleType("triton")
            whole.jit, whole.language = jit, language()
            whole.__spec__ = importlib.machinery.ModuleSpec("triton", None)
            patched.setitem(sys.modules, "triton", whole)
            patched.setitem(sys.modules, "triton.language", whole.language)
        else:
            patched.setenv("TRITON_INTERPRET", "1")
        patched.delitem(sys.modules, KERNELS)
        kernels = importlib.import_module(KERNELS)
        patched.setattr(lstm_on_chip, "lstm_kernels", kernels)
        yield kernels
        patched.delitem(sys.modules, KERNELS)
