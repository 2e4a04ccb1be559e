"""Reading and writing activations by name: `with record(model, "layers.*.attention.pattern") as cache`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.func import functional_call
from torch.utils.hooks import RemovableHandle

from sandlab.checking import checked_types
from sandlab.errors import BadInput, nearest, shown

__all__ = ["ActivationCache", "Occurrences", "VmapRecording", "matching", "patch", "record"]

Visit = Callable[[Tensor], Tensor]
VisitPart = Callable[[str], Visit | None]
"""Path of a part in a module's output ("" for its first tensor, "[1]" for the second, …) → what to do with it."""
_PART = re.compile(r"((?:\[\d+\])+)$")


class Occurrences(Mapping[str, Tensor]):
    """Activation name → tensor. An activation that is computed several times in a pass (a looped layer) has the names
    `name#0`, `name#1`, …; the plain name gives the last one.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, dict[int, Tensor]] = {}

    def put(self, name: str, occurrence: int, value: Tensor) -> None:
        self._by_name.setdefault(name, {})[occurrence] = value

    def count(self, name: str) -> int:
        return len(self._by_name.get(name, {}))

    def __getitem__(self, name: str) -> Tensor:
        plain, _, occurrence = name.partition("#")
        found = self._by_name.get(plain, {})
        if not occurrence and found:
            return found[max(found)]
        if occurrence.isdecimal() and int(occurrence) in found:
            return found[int(occurrence)]
        recorded = ", ".join(self) or "nothing yet: run the model inside the `with` block"
        raise KeyError(f"{name!r} was not recorded. {nearest(name, self)} Recorded: {recorded}")

    def __iter__(self) -> Iterator[str]:
        for name, found in self._by_name.items():
            yield name
            if len(found) > 1:
                yield from (f"{name}#{occurrence}" for occurrence in sorted(found))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ActivationCache(Occurrences):
    """What was recorded in the last forward pass; `gradients` holds what a backward pass through it sent back."""

    def __init__(self) -> None:
        super().__init__()
        self.gradients = Occurrences()

    def start(self) -> None:
        """Forget the last forward pass; its backward pass no longer writes here."""
        self._by_name = {}
        self.gradients = Occurrences()


def matching(model: nn.Module, *patterns: str) -> dict[str, nn.Module]:
    """The named modules of `model` whose path matches one of the glob patterns."""
    if not all(isinstance(glob, str) for glob in patterns):
        raise BadInput(f"activations are named by patterns such as 'layers.*', got {shown(patterns)}")
    named = {name: module for name, module in model.named_modules() if name}
    found = {
        name: module for name, module in named.items() if any(fnmatch.fnmatchcase(name, glob) for glob in patterns)
    }
    for glob in patterns:
        if not any(fnmatch.fnmatchcase(name, glob) for name in named):
            hint = nearest(glob, named) or "see model.activations()"
            raise BadInput(f"no activation matches {glob!r}: {hint}")
    return found


@checked_types
@contextmanager
def record(model: nn.Module, *patterns: str, gradients: bool = False) -> Iterator[ActivationCache]:
    """Keep the outputs of every activation that matches; with `gradients`, also the gradients that reach them.

    Values stay part of the autograd graph (call `.detach()` for plain numbers) and include what `patch` wrote. For a
    population the member axis is first. A new forward pass replaces the values of the last one. Of a module that
    returns several tensors (`nn.GRU`, `nn.MultiheadAttention`) the first has the module's name, the others are
    `name[1]`, `name[1][2]` and so on.

    >>> with record(model, "layers.*.resid_post", gradients=True) as cache:
    ...     model(tokens).sum().backward()
    >>> cache["layers.0.resid_post"], cache.gradients["layers.0.resid_post"]
    """
    template = _template(model)
    cache = ActivationCache()

    def keep(name: str) -> Visit:
        def visit(value: Tensor) -> Tensor:
            occurrence = cache.count(name)
            if gradients:
                value = _own_node(value)
                kept = cache.gradients
                if value.requires_grad:
                    value.register_hook(lambda gradient: kept.put(name, occurrence, gradient))
            cache.put(name, occurrence, value)
            return value

        return visit

    handles = [template.register_forward_pre_hook(lambda _module, _inputs: cache.start())]
    for name, module in matching(template, *patterns).items():
        handles.append(_attach(model, module, lambda part, name=name: keep(name + part), reads=True))
    try:
        yield cache
    finally:
        for handle in handles:
            handle.remove()


@checked_types
@contextmanager
def patch(model: nn.Module, changes: Mapping[str, Tensor | Visit]) -> Iterator[None]:
    """Write activations: each pattern's outputs become the given tensor, or the function of what was computed.

    A tensor is broadcast to the activation's shape; "gru[1]" is the second tensor that a module returns. In a
    population tensor and function see the member axis first. Of two nested patches the inner one is applied last.

    >>> with patch(model, {"layers.0.attention.pattern": lambda pattern: pattern.roll(1, dims=-1)}):
    ...     model(tokens)
    """
    template = _template(model)

    def write(name: str, change: Tensor | Visit) -> Visit:
        def visit(value: Tensor) -> Tensor:
            if callable(change):
                return change(value)
            try:
                return change.to(value).expand_as(value)
            except RuntimeError:
                given, needed = tuple(change.shape), tuple(value.shape)
                raise BadInput(f"the replacement of {name!r} must broadcast to {needed}, got {given}") from None

        return visit

    handles = []
    for pattern, change in changes.items():
        glob, part = _split_part(pattern)
        for name, module in matching(template, glob).items():
            visit = write(name, change)
            only = lambda path, part=part, visit=visit: visit if path == part else None  # noqa: E731
            handles.append(_attach(model, module, only, reads=False))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class VmapRecording:
    """Lets `record` and `patch` work on a population whose members run under `vmap`.

    The population has the architecture in `template` and calls its members with `run_members`. Inside, each activation
    that is read or written leaves `vmap` for a moment (the batching rule of a custom autograd function sees the tensor
    with its member axis), so values and gradients are ordinary tensors.
    """

    template: nn.Module
    anchor: Tensor | None = None

    def run_members(
        self,
        state: Mapping[str, Tensor],
        inputs: Tensor,
        *,
        input_dim: int | None = 0,
        randomness: str = "error",
    ) -> Tensor:
        """The members' outputs, member axis first, by `vmap` over stacked parameters.

        `input_dim` is the member axis of the inputs (None: all members read the same), `randomness` that of `vmap`.
        """

        def one(weights: dict[str, Tensor], x: Tensor, anchor: Tensor) -> Tensor:
            self.anchor = anchor
            try:
                return functional_call(self.template, weights, (x,))
            finally:
                self.anchor = None

        members = next(iter(state.values())).shape[0]
        anchors = torch.zeros(members, device=inputs.device)
        return torch.vmap(one, (0, input_dim, 0), randomness=randomness)(dict(state), inputs, anchors)


class _VmapInfo(Protocol):
    batch_size: int


class _Outside(torch.autograd.Function):
    """Apply `visit` to the tensor of all members from within the function that `vmap` runs for one.

    The anchor is a number that differs by member, so that the batching rule is called even for a value that does not.
    """

    @staticmethod
    def forward(value: Tensor, anchor: Tensor, visit: Visit) -> Tensor:
        raise RuntimeError("an activation of a vmapped population is visited outside of vmap")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[object, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def vmap(
        info: _VmapInfo, in_dims: tuple[int | None, ...], value: Tensor, anchor: Tensor, visit: Visit
    ) -> tuple[Tensor, int]:
        if in_dims[0] is None:
            return visit(value.expand(info.batch_size, *value.shape)), 0
        return visit(value.movedim(in_dims[0], 0)), 0


class _Hook:
    """What `visit` gives for each part of an output, as a forward hook; those that `reads` run after all that write."""

    def __init__(self, model: nn.Module, visit: VisitPart, reads: bool) -> None:
        self.model, self.visit, self.reads = model, visit, reads

    def __call__(self, module: nn.Module, inputs: object, output: object) -> object:
        return self._walk(output, "")

    def _walk(self, value: object, path: str) -> object:
        """The same structure with every tensor visited; the first part of a tuple goes by the module's own name."""
        if isinstance(value, Tensor):
            return self._visit(value, path)
        if isinstance(value, Mapping):  # the outputs of Hugging Face's models
            for index, (key, part) in enumerate(list(value.items())):
                value[key] = self._walk(part, path if index == 0 else f"{path}[{index}]")  # type: ignore[index]
            return value
        if isinstance(value, (tuple, list)):
            parts = [self._walk(part, path if i == 0 else f"{path}[{i}]") for i, part in enumerate(value)]
            make: Callable[..., object] = type(value)
            return make(*parts) if hasattr(value, "_fields") else make(parts)
        return value

    def _visit(self, value: Tensor, path: str) -> Tensor:
        visit = self.visit(path)
        if visit is None:
            return value
        anchor = self.model.anchor if isinstance(self.model, VmapRecording) else None
        return visit(value) if anchor is None else _Outside.apply(value, anchor, visit)


def _attach(model: nn.Module, module: nn.Module, visit: VisitPart, *, reads: bool) -> RemovableHandle:
    handle = module.register_forward_hook(_Hook(model, visit, reads))
    hooks = module._forward_hooks
    for key in [key for key, hook in hooks.items() if isinstance(hook, _Hook) and hook.reads]:
        hooks[key] = hooks.pop(key)
    return handle


def _split_part(pattern: str) -> tuple[str, str]:
    """ "gru[1]" as ("gru", "[1]")."""
    found = _PART.search(pattern) if isinstance(pattern, str) else None
    return (pattern[: found.start()], found[1]) if found else (pattern, "")


def _template(model: nn.Module) -> nn.Module:
    """The module whose activations have the names: the model itself, or a population's architecture."""
    if not isinstance(model, nn.Module):
        raise BadInput(f"model must be a torch module, got {shown(model)}")
    return model.template if isinstance(model, VmapRecording) else model


def _own_node(value: Tensor) -> Tensor:
    """The same value as a separate node of the graph, so that its gradient is that of this activation only.

    An identity `HookPoint` returns its input, whose other uses (a skip connection) would be counted too; and a value
    that depends on no parameter (a one-hot token) would have no gradient at all.
    """
    if not value.is_floating_point() or not torch.is_grad_enabled():
        return value
    return value.view_as(value) if value.requires_grad else value.detach().requires_grad_()
