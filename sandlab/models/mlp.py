"""The multi-layer perceptron, on concatenated one-hot tokens or on real features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import BadInput, choice, integer, require
from sandlab.models._parts.activations import ACTIVATIONS
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import HookPoint, Linear, one_hot
from sandlab.registry import register

__all__ = ["MLP", "MLPConfig"]


@dataclass(frozen=True, kw_only=True)
class MLPConfig(Config):
    """Options of the perceptron.

    vocab, length   inputs are `length` tokens, concatenated as one-hot vectors; or
    features        inputs are this many real numbers (then give neither vocab nor length)
    hidden          widths of the hidden layers, first one first; () for a linear model
    outputs         classes (default: vocab)
    activation      after each hidden layer
    bias            the hidden layers have biases; readout_bias: so has the readout
    init_std        standard deviation of every drawn weight (None: 1/√inputs); zero_readout starts the last map at zero
    """

    vocab: int | None = None
    length: int | None = None
    features: int | None = None
    hidden: tuple[int, ...] = (64,)
    outputs: int | None = None
    activation: str = "relu"
    bias: bool = True
    readout_bias: bool = True
    init_std: float | None = None
    zero_readout: bool = False

    def __post_init__(self) -> None:
        on_tokens = self.vocab is not None and self.length is not None and self.features is None
        on_numbers = self.features is not None and self.vocab is None and self.length is None
        given = (self.vocab, self.length, self.features)
        allowed = "either vocab and length (tokens) or features (real numbers)"
        require(on_tokens or on_numbers, "(vocab, length, features)", given, allowed)
        self.check_integers("vocab", "length", "features", "outputs")
        self.check_numbers("init_std", low=0.0)
        require(on_tokens or self.outputs is not None, "outputs", None, "given with features")
        is_row = isinstance(self.hidden, Sequence) and not isinstance(self.hidden, str)
        require(is_row, "hidden", self.hidden, "one width per hidden layer, such as (64,)")
        object.__setattr__(self, "hidden", tuple(integer("hidden", width, low=1) for width in self.hidden))
        choice("activation", self.activation, ACTIVATIONS)

    @property
    def input_width(self) -> int:
        return self.features or (self.vocab or 0) * (self.length or 0)


class MLPLayer(nn.Module):
    """φ(W x + b)."""

    def __init__(self, inputs: int, outputs: int, config: MLPConfig) -> None:
        super().__init__()
        self.drive = Linear(inputs, outputs, bias=config.bias, std=config.init_std)
        self.hidden = HookPoint()
        self.activation = config.activation

    def forward(self, x: Tensor) -> Tensor:
        return self.hidden(ACTIVATIONS[self.activation](self.drive(x)))


@register("models")
class MLP(Model):
    """x ← φ(W x + b), layer by layer, then a linear readout; one answer for the whole input.

    Tokens (…, length) become one vector of length · vocab coordinates, position by position; real inputs (…, features)
    are taken as they are. Logits have a time axis of 1.

    Activations: `embed`, `layers.i.drive` (before φ), `layers.i.hidden`, `logits`.
    """

    carries_members = True
    config: MLPConfig

    @configured(MLPConfig)
    def __init__(self, config: MLPConfig) -> None:
        super().__init__(config)
        widths = (config.input_width, *config.hidden)
        self.embed = HookPoint()
        self.layers = nn.ModuleList(MLPLayer(before, after, config) for before, after in pairwise(widths))
        outputs = config.outputs or config.vocab or 1
        self.unembed = Linear(widths[-1], outputs, bias=config.readout_bias, std=config.init_std)
        if config.zero_readout:
            nn.init.zeros_(self.unembed.weight)
        self.logits = HookPoint()

    def forward(self, inputs: Tensor) -> Float[Tensor, "*lead 1 outputs"]:
        x = self.embed(self._embed(inputs)).unsqueeze(-2)
        for layer in self.layers:
            x = layer(x)
        return self.logits(self.unembed(x))

    def _embed(self, inputs: Tensor) -> Float[Tensor, "*lead inputs"]:
        config, size = self.config, inputs.shape[-1]
        expected = config.length or config.features
        require(size == expected, "the last axis of the inputs", size, f"{expected}", "an MLP has one size of input")
        if config.vocab is not None:
            return one_hot(inputs, config.vocab, self.dtype).flatten(-2)
        if inputs.is_complex():
            raise BadInput("inputs must be real numbers, got complex ones: give real and imaginary parts")
        return inputs.to(self.dtype)
