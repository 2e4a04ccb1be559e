"""Byte-pair encoding of text: a small vocabulary of word pieces, learnt from the text itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sandlab.errors import integer, require

__all__ = ["Subwords"]

SPACE = "▁"


@dataclass(frozen=True)
class Subwords:
    """Pieces of words; a piece that starts a word begins with "▁" (Sennrich et al. 2016, merges of frequent pairs).

    >>> pieces = Subwords.learn(["the cat sat", "the mat"], size=40)
    >>> pieces.decode(pieces.encode("the mat"))
    'the mat'

    first   number of the first piece: smaller ones are reserved. A character that was never seen is left out
    """

    pieces: tuple[str, ...]
    merges: tuple[tuple[str, str], ...] = ()
    first: int = 4
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def learn(cls, lines: Iterable[str], size: int, *, first: int = 4) -> Subwords:
        """At most `size` tokens, reserved ones included: all characters, then merges of the most frequent pair."""
        words = Counter(SPACE + word for line in lines for word in line.split())
        letters = sorted({letter for word in words for letter in word})
        integer("size", size, low=first + len(letters), hint="every character needs a token")
        split = {word: tuple(word) for word in words}
        merges: list[tuple[str, str]] = []
        while first + len(letters) + len(merges) < size:
            pairs: Counter[tuple[str, str]] = Counter()
            for word, count in words.items():
                for pair in zip(split[word], split[word][1:]):
                    pairs[pair] += count
            if not pairs:
                break
            best = min(pairs, key=lambda pair: (-pairs[pair], pair))
            merges.append(best)
            split = {word: _merge(parts, best) for word, parts in split.items()}
        return cls((*letters, *dict.fromkeys(a + b for a, b in merges)), tuple(merges), first)

    def __len__(self) -> int:
        return self.first + len(self.pieces)

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {piece: self.first + place for place, piece in enumerate(self.pieces)}

    def encode(self, line: str) -> list[int]:
        """Tokens of a line."""
        parts = [part for word in line.split() for part in self._split(SPACE + word)]
        return [self.numbers[part] for part in parts if part in self.numbers]

    def decode(self, tokens: Sequence[int]) -> str:
        """The line of some tokens; reserved ones are left out."""
        shown = [token for token in tokens if token >= self.first]
        require(all(token < len(self) for token in shown), "tokens", tokens, f"below {len(self)}")
        return "".join(self.pieces[token - self.first] for token in shown).replace(SPACE, " ").strip()

    def _split(self, word: str) -> tuple[str, ...]:
        if word not in self._known:
            parts = tuple(word)
            for merge in self.merges:
                parts = _merge(parts, merge)
            self._known[word] = parts
        return self._known[word]


def _merge(parts: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    """Every occurrence of the pair as one piece, from the left."""
    found, place = [], 0
    while place < len(parts):
        joined = parts[place : place + 2] == pair
        found.append(parts[place] + parts[place + 1] if joined else parts[place])
        place += 2 if joined else 1
    return tuple(found)
