"""Models as protocols of two parties: what one half of a word must tell the other, in bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.lenses.predictions import evaluating
from sandlab.models._parts.sequence import SequenceModel, State
from sandlab.models.attention import Attention
from sandlab.models.hooks import patch, record
from sandlab.models.transformer import Transformer
from sandlab.registry import register
from sandlab.worlds.base import Batch

__all__ = [
    "AttentionMessage",
    "attention_message",
    "attention_protocol",
    "protocol_accuracy",
    "quantise",
    "recurrent_protocol",
    "recurrent_state_size",
]

FULL_PRECISION = 64


def quantise(values: Tensor, bits: int) -> Tensor:
    """Each number rounded to one of 2^bits equally spaced levels between the smallest and the largest of its column.

    The range (over the first axis, the examples) is part of what both parties know. At 64 bits numbers stay as they
    are.
    """
    integer("bits", bits, low=0, high=FULL_PRECISION)
    if bits >= 52:
        return values
    low, high = values.amin(0, keepdim=True), values.amax(0, keepdim=True)
    steps = 2**bits - 1
    if steps == 0:
        return ((low + high) / 2).expand_as(values)
    width = torch.where(high > low, high - low, 1.0)
    return low + ((values - low) / width * steps).round() / steps * width


@register("lenses")
def recurrent_protocol(
    model: SequenceModel, tokens: Int[Tensor, "word time"], cut: int, bits: int = FULL_PRECISION
) -> Float[Tensor, "word read outputs"]:
    """Alice reads the first `cut` tokens and sends her state, `bits` per number; Bob reads on from there.

    The logits of Bob's tokens. The message has (numbers of the state) · bits bits, whatever the word.

    Source: the slides' reading of Karchmer and Wigderson 1988 for recurrent networks; Arora et al. 2024.
    """
    require(0 < cut < tokens.shape[1], "cut", cut, f"between 1 and {tokens.shape[1] - 1}")
    with evaluating(model), torch.no_grad():
        _, states = model.advance(tokens[:, :cut])
        sent: list[State] = [tuple(quantise(part, bits) for part in state) for state in states]
        logits, _ = model.advance(tokens[:, cut:], sent)
    return logits


def recurrent_state_size(model: SequenceModel, cut: int = 1) -> int:
    """Numbers in the state that Alice sends (for attention layers of a hybrid it grows with what she has read)."""
    with evaluating(model), torch.no_grad():
        _, states = model.advance(torch.zeros(1, cut, dtype=torch.long, device=model.device))
    return sum(part.numel() for state in states for part in state)


@dataclass(frozen=True)
class AttentionMessage:
    """What the tokens of one party add to an attention layer's output at the last token, for each head.

    numerator     Σ_j exp(s_j − m) v_j
    denominator   Σ_j exp(s_j − m)
    shift         m, a number that both parties know, so that nothing overflows
    """

    numerator: Float[Tensor, "word head width"]
    denominator: Float[Tensor, "word head"]
    shift: Float[Tensor, "word head"]

    @property
    def numbers(self) -> int:
        """H(m + 1): what is sent for each word."""
        return self.numerator[0].numel() + self.denominator[0].numel()

    def rounded(self, bits: int) -> AttentionMessage:
        return AttentionMessage(quantise(self.numerator, bits), quantise(self.denominator, bits), self.shift)

    def joined(self, other: AttentionMessage) -> Float[Tensor, "word head width"]:
        """(N_A + N_B)/(Z_A + Z_B)"""
        total = self.denominator + other.denominator
        return (self.numerator + other.numerator) / total.clamp(min=1e-30).unsqueeze(-1)


def attention_message(
    scores: Float[Tensor, "word head key"], values: Float[Tensor, "word head key width"], keys: slice,
    shift: Float[Tensor, "word head"],
) -> AttentionMessage:  # fmt: skip
    """The message of the party that holds some of the keys."""
    weights = (scores[..., keys] - shift.unsqueeze(-1)).exp()
    return AttentionMessage((weights.unsqueeze(-1) * values[..., keys, :]).sum(-2), weights.sum(-1), shift)


@register("lenses")
def attention_protocol(
    model: Transformer, tokens: Int[Tensor, "word time"], cut: int, bits: int = FULL_PRECISION
) -> tuple[Float[Tensor, "word 1 outputs"], int]:
    """Alice holds the first `cut` tokens of a one-layer transformer and sends N_A and Z_A of every head.

    Bob holds the rest, with the last token, and finishes the computation. Logits of the last token, and the numbers
    sent per word, H(m + 1). With all digits the result is that of the model.

    Source: Sanford, Hsu and Telgarsky 2023; Peng, Narayanan and Papadimitriou 2024.
    """
    require(model.config.layers == 1 == model.config.loops, "layers", model.config.layers, "1")
    require(model.config.attention == "softmax", "attention", model.config.attention, "'softmax'")
    require(0 < cut < tokens.shape[1], "cut", cut, f"between 1 and {tokens.shape[1] - 1}")
    attention = model.layers[0].attention
    path = "layers.0.attention"
    with evaluating(model), torch.no_grad():
        with record(model, f"{path}.scores", f"{path}.value") as cache:
            model(tokens)
        scores = cache[f"{path}.scores"][:, :, -1]
        if model.config.window is not None:
            ahead = torch.arange(tokens.shape[1] - 1, -1, -1, device=scores.device)
            scores = scores.masked_fill(ahead >= model.config.window, -torch.inf)
        values = _split(attention, cache[f"{path}.value"])
        shift = scores.amax(-1)
        sent = attention_message(scores, values, slice(0, cut), shift).rounded(bits)
        kept = attention_message(scores, values, slice(cut, None), shift)
        last = sent.joined(kept).flatten(1)
        with patch(model, {f"{path}.z": lambda z: torch.cat([z[:, :-1], last.unsqueeze(1)], 1)}):
            logits = model(tokens)[:, -1:]
    return logits, sent.numbers


@register("lenses")
def protocol_accuracy(
    model: SequenceModel | Transformer, batch: Batch, cut: int, precisions: Sequence[int]
) -> list[tuple[int, float]]:
    """(bits sent per word, accuracy of the last answer) for several precisions."""
    found = []
    for bits in precisions:
        if isinstance(model, Transformer):
            logits, numbers = attention_protocol(model, batch.inputs, cut, bits)
        else:
            logits, numbers = recurrent_protocol(model, batch.inputs, cut, bits), recurrent_state_size(model, cut)
        right = logits[:, -1].argmax(-1) == batch.targets[:, -1]
        found.append((numbers * bits, float(right.double().mean())))
    return found


def _split(attention: Attention, values: Tensor) -> Tensor:
    return values.unflatten(-1, (attention.heads, -1)).transpose(-2, -3)
