"""Flip-flop strings told in English: Alice turns a light on and off, Bob eats, and the light is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from sandlab.errors import integer, number
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.flip_flop.language import IGNORE, READ, WRITE, FlipFlop

__all__ = ["LightSwitchStory", "light_switch_text"]

SENTENCES = {
    WRITE: ("Alice turns the light off.", "Alice turns the light on."),
    IGNORE: ("Bob eats a banana.", "Bob eats an apple."),
    READ: ("The light is turned off.", "The light is turned on."),
}
VOCABULARY = tuple(sorted({word for pair in SENTENCES.values() for word in " ".join(pair).replace(".", " .").split()}))
LONGEST = 6  # words of the longest sentence, full stop included


def light_switch_text(strings: Int[Tensor, "n time"], *, ask: bool = True) -> list[str]:
    """Fine-token strings as English: Alice's switching writes, Bob's meals are ignored, "The light is turned" reads.

    With `ask`, the last read is left open for a language model to complete with "on" or "off".
    """
    texts = []
    for string in strings.tolist():
        told = [SENTENCES[kind][symbol - 3] for kind, symbol in zip(string[0::2], string[1::2])]
        if ask:
            told[-1] = "The light is turned"
        texts.append(" ".join(told))
    return texts


@register("worlds")
@dataclass(frozen=True)
class LightSwitchStory(World):
    """Strings of FFL(`ignore`) with `length` tokens, told in English with one token per word.

    A full stop is a word; token 0, the full stop, also fills up stories at the end. Only the words "on" and "off" that
    answer a read count.
    """

    length: int = 16
    ignore: float = 0.8

    def __post_init__(self) -> None:
        integer("length", self.length, low=4)
        number("ignore", self.ignore, low=0.0, high=1.0)

    @property
    def vocab(self) -> int:
        return len(VOCABULARY)

    @property
    def letters(self) -> list[str]:
        return list(VOCABULARY)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        batch = FlipFlop.ignoring(self.ignore, length=self.length).sample(n, rng=rng)
        strings = torch.cat([batch.inputs, batch.targets[:, -1:]], 1)
        words, sizes = (table.to(rng.device) for table in _sentences())
        sentence = 2 * strings[:, 0::2] + strings[:, 1::2] - 3
        size = sizes[sentence].unsqueeze(-1)
        starts = sizes[sentence].cumsum(1).unsqueeze(-1) - size
        offset = torch.arange(LONGEST, device=rng.device)
        longest = LONGEST * sentence.shape[1]
        # The blanks of shorter sentences are written behind the end of the story, where nothing is read.
        position = torch.where(offset < size, starts + offset, longest)
        tokens = torch.zeros(n, longest + 1, dtype=torch.long, device=rng.device)
        tokens.scatter_(1, position.flatten(1), words[sentence].flatten(1))
        inputs, targets = tokens[:, : longest - 1], tokens[:, 1:longest]
        return Batch(inputs, targets, inputs == VOCABULARY.index("turned"))

    def oracle(self, batch: Batch) -> Float[Tensor, "n time vocab"]:
        """Certain after "turned": the latest "on" or "off" before it. Uniform where nothing counts."""
        inputs = batch.inputs
        state = (inputs == VOCABULARY.index("off")) | (inputs == VOCABULARY.index("on"))
        latest = torch.where(state, torch.arange(inputs.shape[1], device=inputs.device), 0).cummax(1).values
        certain = one_hot(inputs.gather(1, latest), self.vocab).double()
        return torch.where(batch.mask.unsqueeze(-1), certain, 1 / self.vocab).log()


@cache
def _sentences() -> tuple[Int[Tensor, "sentence word"], Int[Tensor, "sentence"]]:
    """The six sentences as words (row 2 · instruction + symbol, filled up with 0), and their numbers of words."""
    strings = torch.tensor([[kind, 3 + symbol] for kind in range(3) for symbol in range(2)])
    texts = light_switch_text(strings, ask=False)
    rows = [[VOCABULARY.index(word) for word in text.replace(".", " .").split()] for text in texts]
    return torch.tensor([row + [0] * (LONGEST - len(row)) for row in rows]), torch.tensor([len(row) for row in rows])
