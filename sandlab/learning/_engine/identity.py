"""What a training run is, in words that can be compared: a checkpoint answers for its own run alone."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from sandlab import __version__
from sandlab.learning.population import Population
from sandlab.models.base import Model

if TYPE_CHECKING:
    from sandlab.learning._engine.loop import Loop

__all__ = ["digest", "fingerprint", "run_identity"]

_LONGEST = 400


def run_identity(loop: Loop) -> dict[str, str]:
    """World, data seed, model, start weights, objective, strategy, device, libraries, settings: part → text."""
    step, source = loop.step, loop.source
    model = step.model.template if isinstance(step.model, Population) else step.model
    constants = step.model.constants if isinstance(step.model, Population) else {}
    frozen = {name: weight for name, weight in model.named_parameters() if not weight.requires_grad}
    fixed = {**dict(model.named_buffers()), **frozen, **constants}
    config = repr(model.config) if isinstance(model, Model) else ""
    return {
        "world": fingerprint(source.world),
        "data seed": f"{source.rng.initial_seed()}, {digest({'state': source.rng.get_state()})[:16]}",
        "model": f"{_name(type(model))} {config} of {list(step.layout.widths)}",
        "start weights": digest({**{f"row.{index}": row for index, row in enumerate(step.rows)}, **fixed})[:32],
        "objective": fingerprint(source.objective),
        "strategy": step.strategy,
        "device": step.device.type,
        "libraries": f"sandlab {__version__}, torch {torch.__version__}, numpy {np.__version__}",
        "settings": f"{loop.settings}, every {loop.every}",
    }


def fingerprint(value: object) -> str:
    """A value as text, the same in every process: dataclasses by field, tensors by content, functions by name."""
    text = _written(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}… {hashlib.sha256(text.encode()).hexdigest()}"


def digest(tensors: Mapping[str, Tensor], words: str = "") -> str:
    """SHA-256 over names, types, shapes and bytes of tensors, and over further words."""
    found = hashlib.sha256(words.encode())
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        found.update(f"\0{name}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
        found.update(value.reshape(-1).view(torch.uint8).numpy().data if value.numel() else b"")
    return found.hexdigest()


def _written(value: object) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return f"{_name(type(value))}({', '.join(f'{name}={_written(item)}' for name, item in fields)})"
    if isinstance(value, nn.Module):
        return f"{_name(type(value))}({digest(dict(value.state_dict()))})"
    if isinstance(value, (Tensor, np.ndarray)):
        return digest({"": torch.as_tensor(value)})
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_written(key)}: {_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, functools.partial):
        return f"{_written(value.func)}({_written(value.args)}, {_written(value.keywords)})"
    return _name(value) if callable(value) else _plain(value)


def _plain(value: object) -> str:
    """The value's own words, unless they name a place in memory."""
    text = repr(value)
    return _name(type(value)) if " at 0x" in text else text


def _name(thing: object) -> str:
    kind = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{kind.__module__}:{kind.__qualname__}"
