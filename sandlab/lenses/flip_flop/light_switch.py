"""Flip-flop strings in English as prompts for a language model: is "on" or "off" the more likely next word?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sandlab.errors import integer
from sandlab.lenses.flip_flop.tail_errors import ErrorRate
from sandlab.lenses.predictions import evaluating
from sandlab.registry import register
from sandlab.worlds.flip_flop.language import FlipFlop
from sandlab.worlds.flip_flop.light_switch import light_switch_text

__all__ = ["Reader", "WordReader", "light_switch_accuracy"]

WORDS = ("off", "on")


class Reader(Protocol):
    """A language model that completes text."""

    def choose(self, prompts: Sequence[str], words: Sequence[str]) -> list[int]:
        """Index of the most likely next word among `words`, for each prompt."""
        ...


@dataclass
class WordReader:
    """A model whose tokens are words: token i stands for `vocabulary[i]`."""

    model: nn.Module
    vocabulary: Sequence[str]

    def encode(self, texts: Sequence[str]) -> tuple[Int[Tensor, "text time"], Int[Tensor, "text"]]:
        """Texts as tokens, padded on the right, and the index of the last word of each; a full stop is a word."""
        index = {word: token for token, word in enumerate(self.vocabulary)}
        rows = [torch.tensor([index[word] for word in text.replace(".", " .").split()]) for text in texts]
        lasts = torch.tensor([len(row) - 1 for row in rows])
        return nn.utils.rnn.pad_sequence(rows, batch_first=True), lasts

    def choose(self, prompts: Sequence[str], words: Sequence[str]) -> list[int]:
        choices = [self.vocabulary.index(word) for word in words]
        device = next(self.model.parameters()).device
        chosen: list[int] = []
        with evaluating(self.model), torch.no_grad():
            for start in range(0, len(prompts), 64):
                tokens, lasts = self.encode(prompts[start : start + 64])
                logits = self.model(tokens.to(device))[torch.arange(len(lasts)), lasts]
                chosen += logits[:, choices].argmax(-1).tolist()
        return chosen


@register("lenses")
def light_switch_accuracy(
    reader: Reader,
    *,
    length: int,
    prompts: int = 500,
    demonstration: int = 16,
    ignore: float = 0.8,
    rng: torch.Generator,
) -> ErrorRate:
    """Error rate on the last read of random FFL(`ignore`) strings of `length` tokens, told in English.

    Each prompt is one complete string of `demonstration` tokens (0: none) followed by the test string with its last
    read left open: "Alice turns the light on. Bob eats a banana. … The light is turned". (Liu et al. 2023, (R3).)
    """
    integer("length", length, low=4)
    integer("prompts", prompts, low=1)
    texts, answers = _stories(length, prompts, ignore, rng, ask=True)
    if demonstration:
        examples, _ = _stories(demonstration, prompts, ignore, rng, ask=False)
        texts = [f"{example} {text}" for example, text in zip(examples, texts)]
    chosen = reader.choose(texts, WORDS)
    return ErrorRate(sum(choice != answer for choice, answer in zip(chosen, answers)), prompts)


def _stories(length: int, n: int, ignore: float, rng: torch.Generator, *, ask: bool) -> tuple[list[str], list[int]]:
    """Random strings as text, and the symbol of each last read."""
    batch = FlipFlop.ignoring(ignore, length=length).sample(n, rng=rng)
    strings = torch.cat([batch.inputs, batch.targets[:, -1:]], 1)
    return light_switch_text(strings, ask=ask), batch.truth["stored"][:, -1].tolist()
