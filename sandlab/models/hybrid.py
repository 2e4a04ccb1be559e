"""Hybrids: recurrent layers with attention at chosen depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from sandlab.errors import choice, integer, require
from sandlab.models._parts.cache import GrowingSlot
from sandlab.models._parts.sequence import SequenceLayer, SequenceModel, State
from sandlab.models.attention import Attention
from sandlab.models.base import check_length, configured
from sandlab.models.layers import RMSNorm
from sandlab.models.recurrent import LSTMConfig, LSTMLayer, RNNConfig, RNNLayer
from sandlab.models.state_space import MixedLayer, StateSpaceConfig, StateSpaceMixer
from sandlab.registry import register

__all__ = ["Hybrid", "HybridConfig"]


@dataclass(frozen=True, kw_only=True)
class HybridConfig(StateSpaceConfig):
    """Options of the hybrid, besides those of the state-space model (which shape its recurrent layers).

    width           coordinates of the residual stream
    length          largest number of positions (for the attention layers)
    layers          number of layers of both kinds together
    recurrent       "state-space", "lstm" or "rnn" (tanh)
    attention_at    depths of the attention layers, counted from 0; () for none
    ratio           instead: (attention, recurrent) layers in each group of layers, attention in the middle of it;
                    (1, 7) puts it at depths 4, 12, 20, …
    heads           of each attention layer
    head_width      coordinates of a head's queries, keys and values (default: width / heads)
    positions       of the attention layers: "none" (the recurrence knows the order), "rotary", "relative" or "alibi"
    window          how many keys back a query sees (None: all)
    mlp             as in the state-space model, but "gelu" unless given
    """

    length: int
    layers: int = 8
    recurrent: str = "state-space"
    attention_at: tuple[int, ...] | None = None
    ratio: tuple[int, int] | None = None
    heads: int = 1
    head_width: int | None = None
    positions: str = "none"
    window: int | None = None
    mlp: str = "gelu"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_integers("length", "heads", "head_width", "window")
        choice("recurrent", self.recurrent, ("state-space", "lstm", "rnn"))
        choice("positions", self.positions, ("none", "rotary", "relative", "alibi"))
        fits = self.head_width is not None or self.width % self.heads == 0
        require(fits, "width", self.width, f"a multiple of heads ({self.heads})", "or give head_width")
        self._check_depths()

    def _check_depths(self) -> None:
        both = self.attention_at is not None and self.ratio is not None
        require(not both, "ratio", self.ratio, "None when attention_at is given", "they say the same thing twice")
        for name in ("attention_at", "ratio"):
            value = getattr(self, name)
            is_row = value is None or (isinstance(value, Sequence) and not isinstance(value, str))
            require(is_row, name, value, "a tuple of whole numbers")
            if value is not None:
                object.__setattr__(self, name, tuple(integer(name, entry, low=0) for entry in value))
        if self.ratio is not None:
            require(len(self.ratio) == 2 and sum(self.ratio) > 0, "ratio", self.ratio, "two numbers, such as (1, 7)")
        for depth in self.attention_at or ():
            integer("attention_at", depth, low=0, high=self.layers - 1)

    @property
    def attention_depths(self) -> tuple[int, ...]:
        """Depths at which a layer attends: as given, by the ratio, or in the middle."""
        if self.attention_at is not None:
            return tuple(sorted(set(self.attention_at)))
        if self.ratio is None:
            return (self.layers // 2,)
        attending, group = self.ratio[0], sum(self.ratio)
        first = min(group // 2, group - attending)
        return tuple(depth for depth in range(self.layers) if first <= depth % group < first + attending)


class AttentionMixer(Attention, SequenceLayer):
    """Attention that can continue a sequence, given the keys and values so far."""

    def advance(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        slot = GrowingSlot(state, x)
        total = slot.before + x.shape[-2]
        require(total <= self.length, "sequence length", total, f"at most {self.length}", "build a longer model")
        return self(x, slot), slot.state


@register("models")
class Hybrid(SequenceModel):
    """Residual stack of recurrent layers with attention at chosen depths; one attention layer already adds recall.

    Each layer is x ← x + mixer(norm(x)), x ← x + mlp(norm(x)), where the mixer is attention at `attention_depths` and a
    recurrence (state-space, LSTM or Elman) elsewhere.

    Activations: `embed`, `layers.i.attention.{query,key,value,scores,pattern,z}` or
    `layers.i.recurrence.{…}`, `layers.i.resid_mid`, `layers.i.mlp.hidden`, `layers.i.resid_post`, `ln_final`, `logits`.

    Source: Wen, Dang and Lyu 2024, "RNNs are not transformers (yet)"; Lieber et al. 2024 (Jamba, ratio 1:7).
    """

    config: HybridConfig

    @configured(HybridConfig)
    def __init__(self, config: HybridConfig) -> None:
        attending = config.attention_depths
        super().__init__(config, [_layer(config, depth in attending) for depth in range(config.layers)])

    def last_norm(self) -> nn.Module:
        return RMSNorm(self.config.width)

    def forward(self, inputs: Tensor) -> Tensor:
        check_length(inputs.shape[-1], self.config.length)
        return super().forward(inputs)


def _layer(config: HybridConfig, attends: bool) -> MixedLayer:
    if not attends:
        return MixedLayer(config, recurrence=_recurrence(config))
    attention = AttentionMixer(
        config.width, config.heads, config.head_width or config.width // config.heads, config.length,
        positions=config.positions, window=config.window, bias=config.bias, std=config.init_std,
    )  # fmt: skip
    return MixedLayer(config, attention=attention)


def _recurrence(config: HybridConfig) -> SequenceLayer:
    vocab, width, bias, std = config.vocab, config.width, config.bias, config.init_std
    if config.recurrent == "lstm":
        return LSTMLayer(width, LSTMConfig(vocab=vocab, width=width, bias=bias, init_std=std))
    if config.recurrent == "rnn":
        return RNNLayer(width, RNNConfig(vocab=vocab, width=width, bias=bias, init_std=std))
    return StateSpaceMixer(config)
