"""Sentence pairs that are given: a corpus in memory, and two aligned text files of a user."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.errors import BadInput, integer, require
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.parallel.subwords import Subwords
from sandlab.worlds.parallel.translation import END, PAD, RESERVED, TranslationWorld

__all__ = ["AlignedText", "SentencePairs"]

_NUMBERS = ("one two three four five six seven eight nine", "eins zwei drei vier fünf sechs sieben acht neun")
_THINGS = ("houses trees books cats dogs", "Häuser Bäume Bücher Katzen Hunde")


@dataclass(frozen=True, eq=False)
class SentencePairs(TranslationWorld):
    """Pairs of padded token sequences; examples are drawn from them with replacement.

    tokens   size of the vocabulary
    """

    sources: Int[Tensor, "pair source"]
    targets: Int[Tensor, "pair target"]
    tokens: int

    def __post_init__(self) -> None:
        require(len(self.sources) == len(self.targets) >= 1, "targets", len(self.targets), f"{len(self.sources)} rows")

    @property
    def vocab(self) -> int:
        return self.tokens

    @property
    def source_length(self) -> int:
        return self.sources.shape[1]

    @property
    def target_length(self) -> int:
        return self.targets.shape[1]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        rows = torch.randint(len(self.sources), (n,), generator=rng, device=rng.device)
        return self.pair(self.sources.to(rng.device)[rows], self.targets.to(rng.device)[rows])


@register("worlds")
@dataclass(frozen=True)
class AlignedText(TranslationWorld):
    """Two text files, line i of one being the translation of line i of the other, as word pieces of one vocabulary.

    For corpora such as WMT14 German–English: one file per language. Without files: counting things in English and
    German, 45 lines.

    source, target   files in UTF-8
    size             tokens of the joint vocabulary (byte-pair encoding of both files)
    longest          pairs with more word pieces than this on a side are left out
    """

    source: str = ""
    target: str = ""
    size: int = 96
    longest: int = 24

    def __post_init__(self) -> None:
        integer("size", self.size, low=RESERVED + 1)
        integer("longest", self.longest, low=1)
        require(bool(self.source) == bool(self.target), "target", self.target, "given with source, or neither")
        first, second = self.lines
        if len(first) != len(second):
            raise BadInput(f"the files must have as many lines as each other, got {len(first)} and {len(second)}")

    @cached_property
    def lines(self) -> tuple[list[str], list[str]]:
        """The lines of both files."""
        if not self.source:
            return _counting(_NUMBERS[0], _THINGS[0]), _counting(_NUMBERS[1], _THINGS[1])
        try:
            first, second = (Path(file).read_text(encoding="utf-8").splitlines() for file in (self.source, self.target))
        except OSError as problem:
            raise BadInput(f"the files cannot be read: {problem}") from None
        return first, second

    @cached_property
    def pieces(self) -> Subwords:
        """The vocabulary of word pieces."""
        return Subwords.learn([*self.lines[0], *self.lines[1]], self.size, first=RESERVED)

    @cached_property
    def pairs(self) -> SentencePairs:
        """All pairs as tokens."""
        coded = [[self.pieces.encode(line) for line in side] for side in self.lines]
        kept = [(a, b) for a, b in zip(*coded) if 1 <= len(a) <= self.longest and 1 <= len(b) <= self.longest]
        require(bool(kept), "longest", self.longest, "large enough that some pair fits")
        sources = _padded([a for a, _ in kept], self.longest)
        targets = _padded([[*b, END] for _, b in kept], self.longest + 1)
        return SentencePairs(sources, targets, len(self.pieces))

    @property
    def vocab(self) -> int:
        return len(self.pieces)

    @property
    def letters(self) -> list[str]:
        return ["_", ".", "<", "?", *self.pieces.pieces]

    def render(self, tokens: Tensor) -> str:
        return self.pieces.decode(tokens.tolist())

    @property
    def source_length(self) -> int:
        return self.longest

    @property
    def target_length(self) -> int:
        return self.longest + 1

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        return self.pairs.sample(n, rng=rng)


def _counting(numbers: str, things: str) -> list[str]:
    return [f"{number} {thing}" for number in numbers.split() for thing in things.split()]


def _padded(rows: list[list[int]], width: int) -> Int[Tensor, "row time"]:
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
