"""A GPU that is only pretended: the CPU computes, but tensors know on which device they would be.

Inside `pretended_gpu()` a tensor or generator that is asked for on "cuda" says so, what is computed from it lies there
too, and what a real GPU would refuse is refused (`WrongDevice`): tensors of two devices in one operation, a generator
of the other device, `numpy()` without `cpu()`. Tensors are told apart by their memory, so that views and weights
follow. Kernels that exist on a GPU alone, recorded steps and `is_cuda` are not pretended.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._C._functorch as functorch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

CPU = torch.device("cpu")
NUMBERS = itertools.cycle(range(120))
"""A GPU of its own for every block: what was remembered for another is not used."""
COPIES = ("aten::copy_", "aten::_to_copy", "aten::set_", "aten::copy")
INDEXED = ("aten::index", "aten::index_put_", "aten::index_put", "aten::_unsafe_index", "aten::_index_put_impl_")
NEW = {
    torch.rand, torch.randn, torch.randint, torch.randperm, torch.zeros, torch.ones, torch.full, torch.empty,
    torch.arange, torch.linspace, torch.logspace, torch.eye, torch.tensor, torch.as_tensor, torch.asarray,
    torch.triu_indices, torch.tril_indices, torch.empty_strided,
}  # fmt: skip
LIKE = {
    torch.zeros_like, torch.ones_like, torch.full_like, torch.empty_like, torch.rand_like, torch.randn_like,
    torch.randint_like, Tensor.new_zeros, Tensor.new_ones, Tensor.new_full, Tensor.new_empty, Tensor.new_tensor,
}  # fmt: skip
DEVICE = torch._C.TensorBase.__dict__["device"]


class WrongDevice(RuntimeError):
    """What a GPU would refuse."""


class PretendedGenerator(torch.Generator):
    """A generator of the CPU that may say it is on a GPU."""

    gpu = CPU

    def __new__(cls, device: str | torch.device = "cpu") -> PretendedGenerator:
        made = super().__new__(cls, "cpu")
        made.place = CPU if torch.device(device).type == "cpu" else cls.gpu
        return made

    def __init__(self, device: str | torch.device = "cpu") -> None:
        pass

    @property
    def device(self) -> torch.device:
        return self.place


class Places:
    """Which memory belongs to the pretended GPU; `free` is what torch makes for itself, which goes with either."""

    def __init__(self, gpu: torch.device) -> None:
        self.gpu = gpu
        self.known: set[int | None] = set()
        self.free: set[int | None] = set()

    def put(self, tensor: Tensor, on_gpu: bool | None) -> Tensor:
        """Note where a tensor lies; None: torch made it for itself."""
        place = self._memory(tensor)
        for places, inside in ((self.known, on_gpu is True), (self.free, on_gpu is None)):
            places.add(place) if inside and place is not None else places.discard(place)
        return tensor

    def has(self, tensor: Tensor) -> bool:
        return self._memory(tensor) in self.known

    def is_free(self, tensor: Tensor) -> bool:
        return self._memory(tensor) in self.free

    def shared(self, first: Tensor, second: Tensor) -> bool:
        return self._memory(first) is not None and self._memory(first) == self._memory(second)

    @staticmethod
    def _memory(tensor: Tensor) -> int | None:
        while functorch.is_functorch_wrapped_tensor(tensor):
            tensor = functorch.get_unwrapped(tensor)
        storage = tensor.untyped_storage()
        return storage.data_ptr() if storage.nbytes() else None


class Asked(TorchFunctionMode):
    """What Python asks for: new tensors, copies to a device, the device of a tensor."""

    def __init__(self, places: Places) -> None:
        super().__init__()
        self.places = places

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options, places = dict(kwargs or {}), self.places
        if getattr(func, "__self__", None) is DEVICE:
            return self._device(args[0])
        if func is Tensor.numpy and places.has(args[0]):
            raise WrongDevice("numpy() of a tensor on the GPU")
        if func is Tensor.cpu:
            return places.put(args[0].clone(), False) if places.has(args[0]) else args[0]
        if func is Tensor.to:
            return self._moved(args[0], args[1:], options)
        if func is torch.nn.functional.one_hot:  # makes its zeros where the real tensor is
            apart = places.put(args[0].clone(), False)
            return places.put(func(apart, *args[1:], **options), places.has(args[0]))
        if func is Tensor.__deepcopy__:  # copies memory without an operation
            return places.put(func(*args, **options), places.has(args[0]))
        self._check_generator(func, args, options)
        if func in NEW or func in LIKE or options.get("device") is not None:
            return self._made(func, args, options)
        return func(*args, **options)

    def _device(self, tensor: Tensor) -> torch.device:
        return self.places.gpu if self.places.has(tensor) else CPU

    def _made(self, func: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
        device = options.pop("device", None)
        given = args[0] if args and isinstance(args[0], Tensor) else None
        own = given is not None and self.places.has(given)
        wanted = own if device is None else torch.device(device).type != "cpu"
        made = func(*args, **options)
        if not isinstance(made, Tensor) or (given is not None and own == wanted and self.places.shared(given, made)):
            return made
        return self.places.put(made.clone() if func in (torch.as_tensor, torch.asarray) else made, wanted)

    def _moved(self, tensor: Tensor, rest: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
        device, kind = options.pop("device", None), options.pop("dtype", None)
        for each in rest:
            if isinstance(each, Tensor):
                device, kind = self._device(each), each.dtype
            elif isinstance(each, torch.device | str):
                device = each
            elif isinstance(each, torch.dtype):
                kind = each
        wanted = self.places.has(tensor) if device is None else torch.device(device).type != "cpu"
        found = tensor if kind is None else tensor.type(kind)
        if wanted == self.places.has(tensor):
            return found
        return self.places.put(found.clone() if self.places.shared(found, tensor) else found, wanted)

    def _check_generator(self, func: Callable[..., Any], args: Any, options: dict[str, Any]) -> None:
        generator = options.get("generator")
        if not isinstance(generator, PretendedGenerator):
            return
        given = next((each for each in args if isinstance(each, Tensor)), None)
        device = self._device(given) if given is not None else torch.device(options.get("device") or "cpu")
        if device.type != generator.device.type:
            raise WrongDevice(f"{func.__name__}: a tensor on {device.type}, a generator on {generator.device.type}")


class Computed(TorchDispatchMode):
    """What is computed lies where its operands lie, which must be one device (but for single numbers)."""

    def __init__(self, places: Places) -> None:
        super().__init__()
        self.places = places

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, options = func._schema.name, kwargs or {}
        given = [each for each in tree_leaves((args, options)) if isinstance(each, Tensor)]
        operands = [each for each in given if each.numel()]
        lead = operands[:1] if name in (*INDEXED, *COPIES) else operands  # indices may lie elsewhere
        where = {self.places.has(each) for each in lead if each.ndim and not self.places.is_free(each)}
        if len(where) > 1:
            shapes = [(tuple(each.shape), self.places.has(each)) for each in operands]
            raise WrongDevice(f"{name} of tensors on two devices (shape, on the GPU): {shapes}")
        on_gpu = True in where or any(self.places.has(each) for each in lead)
        free = not on_gpu and all(self.places.is_free(each) for each in lead)
        result = func(*args, **options)
        for each in tree_leaves(result):
            if isinstance(each, Tensor) and not any(self.places.shared(each, one) for one in given):
                self.places.put(each, None if free else on_gpu)
        return result


@contextlib.contextmanager
def pretended_gpu() -> Iterator[None]:
    """Inside, "cuda" is a device."""
    places = Places(torch.device("cuda", next(NUMBERS)))
    with pytest.MonkeyPatch.context() as patched:
        from_numpy, fork = torch.from_numpy, torch.random.fork_rng
        patched.setattr(PretendedGenerator, "gpu", places.gpu)
        patched.setattr(torch, "Generator", PretendedGenerator)
        patched.setattr(torch.random, "fork_rng", lambda devices=(), **options: fork(devices=[], **options))
        patched.setattr(torch, "from_numpy", lambda array: places.put(from_numpy(array), False))
        with Asked(places), Computed(places):
            yield
