"""Reading and writing activations by name: `with record(model, "layers.*.attention.pattern") as tape`."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from sandlab.errors import BadInput, nearest

__all__ = ["Tape", "matching", "record", "replace"]


class Tape(Mapping[str, Tensor]):
    """What was recorded: activation name → tensor of the last forward pass; `gradients` likewise after a backward.

    An activation computed several times in one pass (a looped layer) is kept once per computation, as `name#0`,
    `name#1`, ...; the plain name gives the last.
    """

    def __init__(self) -> None:
        self.values_by_name: dict[str, Tensor] = {}
        self.gradients: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.values_by_name:
            recorded = ", ".join(self.values_by_name) or "nothing yet: run the model inside the `with` block"
            raise KeyError(f"{name!r} was not recorded. {nearest(name, self.values_by_name)} Recorded: {recorded}")
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    def clear(self) -> None:
        self.values_by_name.clear()
        self.gradients.clear()


def matching(model: nn.Module, *patterns: str) -> dict[str, nn.Module]:
    """The named modules of `model` whose path matches one of the glob patterns."""
    named = {name: module for name, module in model.named_modules() if name}
    found = {
        name: module for name, module in named.items() if any(fnmatch.fnmatchcase(name, glob) for glob in patterns)
    }
    for glob in patterns:
        if not fnmatch.filter(named, glob):
            hint = nearest(glob, named) or "see model.activations()"
            raise BadInput(f"no activation matches {glob!r}: {hint}")
    return found


@contextmanager
def record(model: nn.Module, *patterns: str, gradients: bool = False) -> Iterator[Tape]:
    """Keep the outputs of every activation that matches; with `gradients`, also what backward sends to them.

    Values stay part of the autograd graph (call `.detach()` for plain numbers). For a population the member axis is
    first. A new forward pass replaces the last one's values.
    """
    template, native = _template(model)
    tape = Tape()
    if not native:
        with model.recording(tape, tuple(patterns), gradients):  # type: ignore[operator]
            yield tape
        return
    counts: dict[str, int] = {}

    def start(_module: nn.Module, _inputs: Any) -> None:
        counts.clear()
        tape.clear()

    def keep(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            if not isinstance(output, Tensor):
                return
            if gradients and output.requires_grad:
                output.register_hook(lambda gradient: tape.gradients.__setitem__(name, gradient))
            seen = counts.get(name, 0)
            if seen == 1:
                tape.values_by_name[f"{name}#0"] = tape.values_by_name[name]
            if seen >= 1:
                tape.values_by_name[f"{name}#{seen}"] = output
            counts[name] = seen + 1
            tape.values_by_name[name] = output

        return hook

    handles = [template.register_forward_pre_hook(start)]
    handles += [module.register_forward_hook(keep(name)) for name, module in matching(template, *patterns).items()]
    try:
        yield tape
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def replace(model: nn.Module, changes: Mapping[str, Tensor | Callable[[Tensor], Tensor]]) -> Iterator[None]:
    """Write activations: each pattern's outputs become the given tensor, or the function of what was computed.

    >>> with replace(model, {"layers.0.attention.pattern": lambda pattern: pattern.roll(1, dims=-1)}):
    ...     model(tokens)
    """
    template, native = _template(model)
    if not native:
        with model.replacing(dict(changes)):  # type: ignore[operator]
            yield
        return

    def write(change: Tensor | Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
        def hook(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
            return change(output) if callable(change) else change.to(output).expand_as(output)

        return hook

    handles = []
    for pattern, change in changes.items():
        for module in matching(template, pattern).values():
            handles.append(module.register_forward_hook(write(change)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _template(model: nn.Module) -> tuple[nn.Module, bool]:
    """The module that carries the names, and whether hooks on it see ordinary tensors.

    A population holds one template module; when its members run under `vmap`, values must leave through the vmapped
    function's outputs, so the population itself does the recording.
    """
    template = getattr(model, "template", model)
    return template, template is model or bool(getattr(model, "native", True))
