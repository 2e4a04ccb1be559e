"""How large a model is: depth, widths, heads, largest weight, gates and wires."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Protocol, runtime_checkable

from torch import nn

from sandlab.models._parts.sequence import SequenceConfig
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.models.base import Model
from sandlab.models.transformer import Transformer

__all__ = ["Complexity", "complexity"]


@dataclass(frozen=True)
class Shape:
    """What a network's size depends on before its weights are set."""

    length: int | None
    anchors: int
    depth: int
    width: int
    heads: int
    head_width: int
    mlp_widths: tuple[int, ...]


@dataclass(frozen=True)
class Complexity(Shape):
    """The size of a network in the terms of the theory.

    length       T, the longest word; anchors: tokens put in front of it
    depth        L, number of layers (attention and feed-forward count as one)
    width        d, coordinates of the stream
    heads        most heads in a layer; head_width: their k
    mlp_widths   widest hidden layer of each feed-forward block
    norm         largest absolute weight or bias before the readout; readout_norm: of the readout, which the theory
                 leaves free
    parameters   how many numbers; nonzero: how many of them are not 0
    """

    norm: float
    readout_norm: float
    parameters: int
    nonzero: int

    @property
    def attention_width(self) -> int:
        """max(d, H·k)."""
        return max(self.width, self.heads * self.head_width)

    @property
    def mlp_width(self) -> int:
        return max(self.mlp_widths, default=0)

    @property
    def widest(self) -> int:
        """w = max(attention width, feed-forward width)."""
        return max(self.attention_width, self.mlp_width)

    @property
    def gates(self) -> int | None:
        """T·L·w, the order of the number of gates."""
        return None if self.length is None else self.length * self.depth * self.widest

    @property
    def wires(self) -> int | None:
        """T·L·w², the order of the number of wires."""
        return None if self.gates is None else self.gates * self.widest

    def as_dict(self) -> dict[str, object]:
        extra = {"attention_width": self.attention_width, "mlp_width": self.mlp_width}
        return {**asdict(self), **extra, "gates": self.gates, "wires": self.wires}


def complexity(model: nn.Module) -> Complexity:
    """Depth, widths, heads, largest weight and number of parameters of a built or trained network."""
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.numel()}
    parameters = list(named.values())
    largest = {name: float(parameter.detach().abs().max()) for name, parameter in named.items()}
    readout = {name for name in named if name.split(".")[0] in ("readout", "readout_bias", "unembed")}
    return Complexity(
        **vars(_shape(model)),
        norm=max((value for name, value in largest.items() if name not in readout), default=0.0),
        readout_norm=max((largest[name] for name in readout), default=0.0),
        parameters=sum(parameter.numel() for parameter in parameters),
        nonzero=sum(int(parameter.count_nonzero()) for parameter in parameters),
    )


def _shape(model: nn.Module) -> Shape:
    if isinstance(model, TheoryTransformer):
        theory = model.config
        heads, head_width = max(theory.heads, default=0), max(theory.head_width, default=0)
        hidden = tuple(max(widths, default=0) for widths in theory.hidden)
        return Shape(theory.length, theory.prefix, theory.layers, theory.width, heads, head_width, hidden)
    if isinstance(model, Transformer):
        config = model.config
        heads = max(config.heads_per_layer, default=0)
        head_width = config.head_width or (config.width // heads if heads else 0)
        mlp_width = 0 if config.mlp == "none" else config.mlp_width or 4 * config.width
        depth = config.layers * config.loops
        return Shape(config.length, 0, depth, config.width, heads, head_width, (mlp_width,) * config.layers)
    options = model.config if isinstance(model, Model) else None
    length = options.length if isinstance(options, _WithLength) else None
    if isinstance(options, SequenceConfig):  # a recurrent network's depth grows with the word: each step is one layer
        return Shape(length, 0, options.layers, options.width, 0, 0, ())
    widest = max((max(parameter.shape) for parameter in model.parameters() if parameter.ndim), default=0)
    return Shape(length, 0, 1, widest, 0, 0, ())


@runtime_checkable
class _WithLength(Protocol):
    length: int
