"""Flip-flop strings as English, put to a language model: which word does it expect, "on" or "off"?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from sandlab.errors import BadInput, integer
from sandlab.lenses.flip_flop.tail_errors import ErrorRate
from sandlab.lenses.predictions import evaluating
from sandlab.registry import register
from sandlab.worlds.flip_flop.language import FlipFlop, light_switch_text

__all__ = ["HuggingFaceReader", "Reader", "WordReader", "light_switch_accuracy"]

WORDS = ("off", "on")


class Reader(Protocol):
    """A language model behind a text interface."""

    def choose(self, prompts: Sequence[str], words: Sequence[str]) -> list[int]:
        """Which of the words is the likelier next one, for each prompt."""
        ...


@dataclass
class WordReader:
    """A model of this laboratory on words: `vocabulary` is the list of words, the model's tokens their places."""

    model: nn.Module
    vocabulary: tuple[str, ...]

    def encode(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Texts as tokens, filled up at the right, and the place of each last word; a full stop is a word."""
        place = {word: index for index, word in enumerate(self.vocabulary)}
        rows = [torch.tensor([place[word] for word in text.replace(".", " .").split()]) for text in texts]
        lasts = torch.tensor([len(row) - 1 for row in rows])
        return nn.utils.rnn.pad_sequence(rows, batch_first=True), lasts

    def choose(self, prompts: Sequence[str], words: Sequence[str]) -> list[int]:
        wanted = [self.vocabulary.index(word) for word in words]
        device = next(self.model.parameters()).device
        chosen: list[int] = []
        with evaluating(self.model), torch.no_grad():
            for start in range(0, len(prompts), 64):
                tokens, lasts = self.encode(prompts[start : start + 64])
                scores = self.model(tokens.to(device))[torch.arange(len(lasts)), lasts]
                chosen += scores[:, wanted].argmax(-1).tolist()
        return chosen


class HuggingFaceReader:
    """A causal language model and its tokeniser from a local folder (nothing is downloaded)."""

    def __init__(self, folder: str | Path, device: str = "cpu") -> None:
        if not Path(folder).is_dir():
            raise BadInput(f"no model folder at {folder}: give a local folder with config.json, weights and tokeniser")
        try:
            from transformers import AutoModelForCausalLM, AutoTokenizer
            from transformers import __version__ as version
        except ImportError:
            raise BadInput("reading a Hugging Face model needs the extra: pip install 'sandlab[hf]'") from None
        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        # The number format of the file: a model of 20 billion weights does not fit twice. Version 5 does so by itself.
        kept = {} if int(version.split(".")[0]) >= 5 else {"torch_dtype": "auto"}
        loaded: Any = AutoModelForCausalLM.from_pretrained(str(folder), local_files_only=True, **kept)
        self.model: Any = loaded.to(device).eval()

    def choose(self, prompts: Sequence[str], words: Sequence[str]) -> list[int]:
        # The word's first token after a space decides, as in the published comparison.
        firsts = [self.tokenizer(f" {word}", add_special_tokens=False)["input_ids"][0] for word in words]
        chosen = []
        with torch.no_grad():
            for prompt in prompts:
                tokens = self.tokenizer(prompt, return_tensors="pt").to(self.model.device)
                scores = self.model(**tokens).logits[0, -1]
                chosen.append(int(scores[firsts].argmax()))
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
    """Error of the reader on the last read of random FFL(`ignore`) strings of `length` tokens, told in English.

    Each prompt is one complete string of `demonstration` tokens (0: none) followed by the test string with its last
    read left open: "Alice turns the light on. Bob eats a banana. … The light is turned". (Liu et al. 2023, (R3).)
    """
    integer("length", length, low=4)
    integer("prompts", prompts, low=1)
    batch = FlipFlop.ignoring(ignore, length=length).sample(prompts, rng=rng)
    asked = light_switch_text(torch.cat([batch.inputs, batch.targets[:, -1:]], 1))
    answers = batch.truth["stored"][:, -1].tolist()
    texts = asked
    if demonstration:
        shown = FlipFlop.ignoring(ignore, length=demonstration).sample(prompts, rng=rng)
        told = light_switch_text(torch.cat([shown.inputs, shown.targets[:, -1:]], 1), ask=False)
        texts = [f"{example} {question}" for example, question in zip(told, asked)]
    chosen = reader.choose(texts, WORDS)
    return ErrorRate(sum(choice != answer for choice, answer in zip(chosen, answers)), prompts)
