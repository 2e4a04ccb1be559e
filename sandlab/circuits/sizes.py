"""How large a model is: depth, widths, heads, largest weight, gates and wires."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from sandlab.models.automata.theory import TheoryTransformer
from sandlab.models.base import Model
from sandlab.models.transformer import Transformer

__all__ = ["Complexity", "complexity"]


@dataclass(frozen=True)
class Complexity:
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

    length: int | None
    anchors: int
    depth: int
    width: int
    heads: int
    head_width: int
    mlp_widths: tuple[int, ...]
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

    def as_dict(self) -> dict[str, Any]:
        extra = {name: getattr(self, name) for name in ("attention_width", "mlp_width", "gates", "wires")}
        return {**asdict(self), **extra}


def complexity(model: nn.Module) -> Complexity:
    """Depth, widths, heads, largest weight and number of parameters of a built or trained network."""
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.numel()}
    parameters = list(named.values())
    largest = {name: float(parameter.detach().abs().max()) for name, parameter in named.items()}
    readout = {name for name in named if name.split(".")[0] in ("readout", "readout_bias", "unembed")}
    return Complexity(
        **_shape(model),
        norm=max((value for name, value in largest.items() if name not in readout), default=0.0),
        readout_norm=max((largest[name] for name in readout), default=0.0),
        parameters=sum(parameter.numel() for parameter in parameters),
        nonzero=sum(int(parameter.count_nonzero()) for parameter in parameters),
    )


def _shape(model: nn.Module) -> dict[str, Any]:
    config = getattr(model, "config", None)
    if isinstance(model, TheoryTransformer):
        return {
            "length": model.config.length,
            "anchors": model.config.prefix,
            "depth": model.config.layers,
            "width": model.config.width,
            "heads": max(model.config.heads, default=0),
            "head_width": max(model.config.head_width, default=0),
            "mlp_widths": tuple(max(widths, default=0) for widths in model.config.hidden),
        }
    if isinstance(model, Transformer):
        heads = max(model.config.heads_per_layer, default=0)
        hidden = 0 if model.config.mlp == "none" else model.config.mlp_width or 4 * model.config.width
        return {
            "length": model.config.length,
            "anchors": 0,
            "depth": model.config.layers * model.config.loops,
            "width": model.config.width,
            "heads": heads,
            "head_width": model.config.head_width or (model.config.width // heads if heads else 0),
            "mlp_widths": (hidden,) * model.config.layers,
        }
    # A recurrent network's depth grows with the word: each step is one layer.
    layers = getattr(config, "layers", 1) if isinstance(model, Model) else 1
    widest = max((max(parameter.shape) for parameter in model.parameters() if parameter.ndim), default=0)
    return {
        "length": getattr(config, "length", None),
        "anchors": 0,
        "depth": layers if isinstance(layers, int) else len(layers),
        "width": getattr(config, "width", widest),
        "heads": 0,
        "head_width": 0,
        "mlp_widths": (),
    }
