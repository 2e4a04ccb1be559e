"""Any module of one's own as a model: trained, swept, compared and saved like the built-in ones."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from sandlab import plugins
from sandlab.errors import BadInput, require
from sandlab.models.base import Config, Model, configured
from sandlab.registry import register

__all__ = ["OwnModule", "OwnModuleConfig"]


@dataclass(frozen=True, kw_only=True)
class OwnModuleConfig(Config):
    """Which module, and what it is told about the data.

    module    "my_lab.py:MyModel" or "package.module:MyModel", of a plug-in that is loaded
    vocab, length, outputs   given to its constructor as far as that has parameters of these names; without `outputs`
                             it is told the larger of the two alphabets as its vocabulary
    options   further arguments of the constructor, as pairs (name, value)
    """

    module: str
    vocab: int
    length: int = 64
    outputs: int | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        self.check_integers("vocab", "length", "outputs")


@register("models")
class OwnModule(Model):
    """A module of one's own, from tokens (batch, time) to logits (batch, time, outputs).

    Where the module returns a tuple, its first part are the logits. `record` and `patch` name its activations with
    `inner.` in front.
    """

    config: OwnModuleConfig

    @configured(OwnModuleConfig)
    def __init__(self, config: OwnModuleConfig) -> None:
        super().__init__(config)
        self.inner = _make(config)

    def forward(self, inputs: Tensor) -> Tensor:
        found = self.inner(inputs)
        logits = found[0] if isinstance(found, tuple) else getattr(found, "logits", found)
        wanted = self.config.outputs or self.config.vocab
        fits = isinstance(logits, Tensor) and logits.shape[:-1] == inputs.shape and logits.shape[-1] >= wanted
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        require(fits, self.config.module, f"output {shape}", f"logits ({', '.join(map(str, inputs.shape))}, {wanted})")
        return logits


def _make(config: OwnModuleConfig) -> nn.Module:
    kind = plugins.find(config.module)
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise BadInput(f"{config.module} must be a class of torch.nn.Module, got {kind!r}")
    known = inspect.signature(kind).parameters
    everything = any(each.kind is each.VAR_KEYWORD for each in known.values())
    outputs = config.outputs or config.vocab
    vocab = config.vocab if "outputs" in known or everything else max(config.vocab, outputs)
    told = {"vocab": vocab, "length": config.length, "outputs": outputs}
    given = {name: value for name, value in told.items() if name in known or everything} | dict(config.options)
    try:
        return kind(**given)
    except TypeError as problem:
        raise BadInput(
            f"{config.module} cannot be made with {', '.join(given) or 'no arguments'}: {problem}"
        ) from problem
