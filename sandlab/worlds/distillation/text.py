"""Masked prediction on a text of one's own: words become tokens, windows of the text become examples."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.errors import BadInput, integer, number, require
from sandlab.random import rng as make_rng
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.distillation.derivations import sample_sentences
from sandlab.worlds.distillation.synthetic_grammars import grammar

__all__ = ["MaskedText", "substitute_text"]


@functools.lru_cache(maxsize=4)
def substitute_text(sentences: int = 400, seed: int = 0) -> str:
    """A generated text, where no corpus is given: sentences of cfg3f whose triples of terminals are written as words.

    A stand-in with a few hundred word forms, not natural language; results on it are no results on text.
    """
    rules = grammar("cfg3f")
    drawn = sample_sentences(rules, sentences, rng=make_rng(seed, "substitute text"))
    lines = []
    for row, length in zip(drawn.tokens.tolist(), drawn.lengths.tolist()):
        words = ["abc"[row[i]] + "xyz"[row[i + 1]] + "mno"[row[i + 2]] for i in range(0, length - 2, 3)]
        lines.append(" ".join(word + words[i - 1][0] if i % 2 else word for i, word in enumerate(words)))
    return "\n".join(lines)


@functools.lru_cache(maxsize=8)
def _read(path: str, words: int, stamp: str) -> tuple[Int[Tensor, "token"], tuple[str, ...]]:
    """The text as token numbers (rare words are <unk>), and the words."""
    text = Path(path).read_text(encoding="utf-8") if path else substitute_text()
    tokens = text.split()
    if len(tokens) < 100:
        raise BadInput(f"{path or 'the text'} has {len(tokens)} words: give a text of at least 100")
    kept = [word for word, _ in Counter(tokens).most_common(words - 1)]
    index = {word: number + 1 for number, word in enumerate(kept)}
    return torch.tensor([index.get(word, 0) for word in tokens]), ("<unk>", *kept)


@register("worlds")
@dataclass(frozen=True)
class MaskedText(World):
    """Masked prediction (80/10/10) on windows of a text that the user gives.

    path     a text file, split at white space; "" is a generated stand-in (see `substitute_text`)
    words    the most frequent words that are kept; the others are <unk>
    window   words of an example
    rate, keep, swap   as in `MaskedGrammar`
    held_out   share of the text, its end, that `sample` draws from; trainings (`at`) draw from the rest
    training   draw from the rest here too

    Tokens: words, then BOS, EOS, PAD, MASK and a spare. The recipe of the source's Wikipedia and Books experiment.
    """

    path: str = ""
    words: int = 1000
    window: int = 64
    rate: float = 0.15
    keep: float = 0.1
    swap: float = 0.1
    held_out: float = 0.1
    training: bool = False

    def __post_init__(self) -> None:
        number("held_out", self.held_out, low=0.0, high=0.9)
        integer("words", self.words, low=10)
        integer("window", self.window, low=2)
        for name in ("rate", "keep", "swap"):
            number(name, getattr(self, name), low=0.0, high=1.0)
        if self.path:
            require(Path(self.path).is_file(), "path", self.path, "a text file")

    @property
    def text(self) -> tuple[Int[Tensor, "token"], tuple[str, ...]]:
        """The tokens and the words."""
        stamp = str(Path(self.path).stat().st_mtime_ns) if self.path else ""
        return _read(self.path, self.words, stamp)

    @property
    def digest(self) -> str:
        """A hash of the tokens: which text a result belongs to."""
        return hashlib.sha256(self.text[0].numpy().tobytes()).hexdigest()[:12]

    @property
    def vocab(self) -> int:
        return self.words + 5

    @property
    def bos(self) -> int:
        return self.words

    @property
    def pad(self) -> int:
        return self.words + 2

    @property
    def mask_token(self) -> int:
        return self.words + 3

    @property
    def length(self) -> int:
        return self.window + 1

    @property
    def letters(self) -> list[str]:
        words = list(self.text[1])
        return words + ["?"] * (self.words - len(words)) + ["<s>", "</s>", ".", "_", "?"]

    def at(self, step: int) -> MaskedText:
        """The part of the text that trainings see; all of it when nothing is held out."""
        return self if self.training or self.held_out == 0 else replace(self, training=True)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        tokens = _on(self.text[0], rng.device)
        cut = len(tokens) - round(self.held_out * len(tokens))
        tokens = tokens[:cut] if self.training else tokens[cut:] if self.held_out else tokens
        require(len(tokens) > self.window, "window", self.window, f"below the part's {len(tokens)} words")
        start = torch.randint(len(tokens) - self.window, (n, 1), generator=rng, device=rng.device)
        true = tokens[start + torch.arange(self.window, device=rng.device)]
        selected = torch.rand(true.shape, generator=rng, device=rng.device) < self.rate
        fate = torch.rand(true.shape, generator=rng, device=rng.device)
        other = torch.randint(self.words, true.shape, generator=rng, device=rng.device)
        shown = torch.where(fate < self.swap, other, self.mask_token)
        shown = torch.where(fate >= 1 - self.keep, true, shown)
        first = true.new_full((n, 1), self.bos)
        inputs = torch.cat([first, torch.where(selected, shown, true)], 1)
        return Batch(inputs, torch.cat([first, true], 1), torch.cat([torch.zeros_like(selected[:, :1]), selected], 1))


_moved: dict[tuple[int, str], Tensor] = {}


def _on(tokens: Tensor, device: torch.device) -> Tensor:
    """The text on a device, moved once."""
    key = (id(tokens), str(device))
    if key not in _moved:
        _moved[key] = tokens.to(device)
    return _moved[key]
