"""What recurrent models and hybrids share: tokens in, a stack of layers, logits out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import choice
from sandlab.models.base import Config, Model
from sandlab.models.layers import Embedding, HookPoint, Linear, module_list, one_hot

__all__ = ["SequenceConfig", "SequenceLayer", "SequenceModel", "State"]

State = tuple[Tensor, ...]


@dataclass(frozen=True, kw_only=True)
class SequenceConfig(Config):
    """Options that every model of this kind has.

    vocab           number of input tokens
    width, layers   width of the layers, and their number
    outputs         classes of the readout (default: vocab)
    embedding       "learned" (a vector of `width` per token) or "one-hot"
    bias            the maps inside have biases; readout_bias: so has the readout
    init_std        standard deviation of every drawn matrix (None: 1/√inputs)
    read            "all" positions, or only the "last" (logits then have a time axis of 1)
    """

    vocab: int
    width: int = 64
    layers: int = 1
    outputs: int | None = None
    embedding: str = "learned"
    bias: bool = True
    readout_bias: bool = False
    init_std: float | None = None
    read: str = "all"

    def __post_init__(self) -> None:
        self.check_integers("vocab", "width", "layers", "outputs")
        self.check_numbers("init_std", low=0.0)
        choice("embedding", self.embedding, ("learned", "one-hot"))
        choice("read", self.read, ("all", "last"))

    @property
    def input_width(self) -> int:
        """Width of an embedded token."""
        return self.vocab if self.embedding == "one-hot" else self.width


class SequenceLayer(nn.Module):
    """A map of sequences (…, time, width) that can read them in pieces."""

    def forward(self, x: Float[Tensor, "*lead time width"]) -> Float[Tensor, "*lead time outputs"]:
        return self.advance(x, None)[0]

    def advance(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """The outputs, given the state after the earlier pieces (None: at the start), and the new state."""
        raise NotImplementedError


class SequenceModel(Model):
    """Embedding, layers, readout."""

    config: SequenceConfig
    carries_members = True

    def __init__(self, config: SequenceConfig, layers: Sequence[SequenceLayer]) -> None:
        super().__init__(config)
        if config.embedding == "learned":
            self.embedding = Embedding(config.vocab, config.width, std=1.0)
        self.embed = HookPoint()
        self.layers = module_list(layers)
        self.ln_final = self.last_norm()
        outputs = config.outputs or config.vocab
        self.unembed = Linear(config.width, outputs, bias=config.readout_bias, std=config.init_std)
        self.logits = HookPoint()

    def last_norm(self) -> nn.Module:
        return HookPoint()

    def embed_tokens(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead time width"]:
        if self.config.embedding == "one-hot":
            return self.embed(one_hot(inputs, self.config.vocab, self.dtype))
        return self.embed(self.embedding(inputs))

    def read_out(self, x: Float[Tensor, "*lead time width"]) -> Float[Tensor, "*lead read outputs"]:
        if self.config.read == "last":
            x = x[..., -1:, :]
        return self.logits(self.unembed(self.ln_final(x)))

    def forward(self, inputs: Int[Tensor, "*lead time"]) -> Float[Tensor, "*lead read outputs"]:
        x = self.embed_tokens(inputs)
        for layer in self.layers:
            x = layer(x)
        return self.read_out(x)

    def advance(
        self, inputs: Int[Tensor, "*lead time"], states: Sequence[State] | None = None
    ) -> tuple[Float[Tensor, "*lead read outputs"], list[State]]:
        """Logits of the next tokens given the states after the earlier ones (None: at the start), and the new states.

        Reading a sequence in pieces gives the same logits as reading it at once.
        """
        x = self.embed_tokens(inputs)
        after: list[State] = []
        for i, layer in enumerate(self.layers):
            x, state = layer.advance(x, None if states is None else states[i])
            after.append(state)
        return self.read_out(x), after


def flat(x: Tensor, weight: Tensor) -> Tensor:
    """x with all examples in one axis, after the member axis if the weight (of two axes) carries one."""
    return x.reshape(*weight.shape[:-2], -1, *x.shape[-2:])


def product_sum(added: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """added + x Wᵀ in one operation, for one model or many."""
    return torch.addmm(added, x, weight.mT) if weight.ndim == 2 else torch.baddbmm(added, x, weight.mT)
