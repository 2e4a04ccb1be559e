"""Translation: what worlds of sentence pairs share, and a toy language whose ambiguity can be turned up and down."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["END", "MASK", "PAD", "RESERVED", "START", "ToyTranslation", "TranslationWorld"]

PAD, END, START, MASK = 0, 1, 2, 3
RESERVED = 4
"""Tokens below this are no words: padding, the end of a sentence, the start of an answer, [MASK]."""
PLAIN, FIRST, SECOND, SYNONYM, PARTICLE, MARKER = range(6)


@dataclass(frozen=True)
class TranslationWorld(World):
    """Sentence pairs over one vocabulary: inputs are the source, targets the translation and END, both padded."""

    @property
    def source_length(self) -> int:
        """Most tokens of a source."""
        raise NotImplementedError

    @property
    def target_length(self) -> int:
        """Most tokens of a translation, END included."""
        raise NotImplementedError

    def pair(self, source: Int[Tensor, "n source"], target: Int[Tensor, "n target"]) -> Batch:
        """A batch of padded pairs."""
        return Batch(source, target, target != PAD, {"length": (target != PAD).sum(-1)})

    def valid(self, source: Int[Tensor, "n source"], output: Int[Tensor, "n target"]) -> Bool[Tensor, "n"]:
        """Whether each output is a translation of its source."""
        raise NotImplementedError(f"{type(self).__name__} has no exact check: compare with references by BLEU")


@register("worlds")
@dataclass(frozen=True)
class ToyTranslation(TranslationWorld):
    """Translation word by word, except where the target may say it in several ways.

    Plain words have one translation. An A word directly followed by a B word: the two translations stand in the order
    AB with probability ρ, else BA. M words have two synonyms, chosen by one coin z per sentence, P(z = 1) = ζ. F words
    may be followed by a particle, with probability φ, which shifts all that follows. No word occurs twice within three
    neighbouring places, so that no translation repeats a token: every adjacent repeat is an error.

    words                      number of plain, A, B, M and F words
    shortest, longest          words of a source (clause markers included)
    order, synonym, particle   ρ, ζ and φ; (½, ½, ½) is ambiguous, `distilled()` always takes the first way
    clauses                    depth of nested clauses "( … )", whose first word moves to their end in the translation
    """

    words: tuple[int, int, int, int, int] = (6, 4, 4, 3, 3)
    shortest: int = 4
    longest: int = 8
    order: float = 0.5
    synonym: float = 0.5
    particle: float = 0.5
    clauses: int = 0

    def __post_init__(self) -> None:
        for count in self.words:
            integer("words", count, low=0)
        require(len(self.words) == 5 and sum(self.words) >= 4, "words", self.words, "five counts, at least 4 words")
        integer("shortest", self.shortest, low=2)
        integer("longest", self.longest, low=self.shortest, high=1000)
        integer("clauses", self.clauses, low=0)
        for name in ("order", "synonym", "particle"):
            number(name, getattr(self, name), low=0.0, high=1.0)

    def distilled(self) -> Self:
        """The same language with one translation per sentence: order AB, first synonyms, always the particle."""
        return dataclasses.replace(self, order=1.0, synonym=0.0, particle=1.0)

    @property
    def source_length(self) -> int:
        return self.longest

    @property
    def target_length(self) -> int:
        return 2 * self.longest + 1

    @property
    def kinds(self) -> Int[np.ndarray, "word"]:
        """Class of each source word; the last two are the clause markers, when there are clauses."""
        return np.repeat(np.arange(6), (*self.words, 2 if self.clauses else 0))

    @cached_property
    def first_forms(self) -> Int[np.ndarray, "token"]:
        """Token of the first translation of each source token (PAD of what is no word)."""
        return self._forms[0]

    @cached_property
    def second_forms(self) -> Int[np.ndarray, "token"]:
        """The other synonym of an M word, the particle of an F word, else PAD."""
        return self._forms[1]

    @cached_property
    def _forms(self) -> tuple[np.ndarray, np.ndarray]:
        kinds = self.kinds
        first, second = np.zeros((2, RESERVED + len(kinds)), dtype=np.int64)
        first[RESERVED:] = RESERVED + len(kinds) + np.arange(len(kinds))
        double = np.flatnonzero((kinds == SYNONYM) | (kinds == PARTICLE))
        second[RESERVED + double] = RESERVED + 2 * len(kinds) + np.arange(len(double))
        return first, second

    @property
    def vocab(self) -> int:
        kinds = self.kinds
        return RESERVED + 2 * len(kinds) + int(((kinds == SYNONYM) | (kinds == PARTICLE)).sum())

    @property
    def letters(self) -> list[str]:
        kinds, names = self.kinds, "pabmf"
        words = [f"{names[kind]}{i}" if kind < MARKER else "()"[i - len(kinds) + 2] for i, kind in enumerate(kinds)]
        doubled = [f"{word.upper()}'" for word, kind in zip(words, kinds) if kind in (SYNONYM, PARTICLE)]
        return ["_", ".", "<", "?", *words, *(word.upper() for word in words), *doubled]

    def render(self, tokens: Tensor) -> str:
        letters = self.letters
        return " ".join(letters[int(token)] for token in tokens if int(token) not in (PAD, END))

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        spread = self.longest - self.shortest + 1
        lengths = self.shortest + torch.randint(spread, (n, 1), generator=rng, device=rng.device)
        moves, marks = self._structure(lengths, rng)
        ordered = self._words(lengths, marks, rng)
        # Words are drawn in the order of the translation; the source has each clause's last word in front.
        source = torch.zeros_like(ordered).scatter(1, moves, ordered)
        return self.pair(source, self._translate(ordered, rng))

    def _structure(self, lengths: Int[Tensor, "n 1"], rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Where each place of the translation's order stands in the source, and −1, 0 or 1 for clause markers."""
        n, device = len(lengths), rng.device
        place = torch.arange(self.longest, device=device).expand(n, -1)
        moves, marks = place.clone(), torch.zeros_like(place)
        low, high = torch.zeros_like(lengths), lengths - 1
        open_, chain = torch.ones_like(lengths, dtype=torch.bool), []
        for _ in range(self.clauses):
            room = high - low
            open_ = open_ & (room >= 4) & (torch.rand(n, 1, generator=rng, device=device) < 0.5)
            cut = torch.rand(n, 2, generator=rng, device=device)
            left = low + (cut[:, :1] * (room - 3).clamp(min=1)).long()
            right = left + 3 + (cut[:, 1:] * (high - left - 2).clamp(min=1)).long()
            marks = torch.where(open_ & (place == left), -1, torch.where(open_ & (place == right), 1, marks))
            chain.append((open_, left, right))
            low, high = torch.where(open_, left + 3, low), torch.where(open_, right - 1, high)
        for inside, left, right in reversed(chain):
            turned = torch.where((place > left) & (place < right - 1), place + 1, place)
            turned = torch.where(place == right - 1, left + 1, turned)
            moves = torch.where(inside, moves.gather(1, turned.clamp(max=self.longest - 1)), moves)
        return moves, self._moved(marks, moves)

    @staticmethod
    def _moved(marks: Tensor, moves: Tensor) -> Tensor:
        """The markers in the order of the translation."""
        return marks.gather(1, moves)

    def _words(self, lengths: Tensor, marks: Tensor, rng: torch.Generator) -> Int[Tensor, "n place"]:
        """Words in the order of the translation; none equals one of the two before it."""
        total = sum(self.words)
        chosen = torch.full((len(lengths), self.longest + 2), total, device=rng.device)
        for place in range(self.longest):
            draw = torch.randint(total - 2, (len(lengths),), generator=rng, device=rng.device)
            before = chosen[:, place : place + 2].sort(1).values
            draw = draw + (draw >= before[:, 0]).long()
            draw = draw + (draw >= before[:, 1]).long()
            chosen[:, place + 2] = draw
        words = chosen[:, 2:] + RESERVED
        if self.clauses:
            marker = RESERVED + total + (marks == 1).long()
            words = torch.where(marks != 0, marker, words)
        return torch.where(torch.arange(self.longest, device=rng.device) < lengths, words, PAD)

    def _classes(self, words: Int[Tensor, "n place"]) -> tuple[Tensor, Tensor]:
        """Class of each word (−1: padding), and where an A word is directly followed by a B word."""
        table = torch.as_tensor(np.concatenate([np.full(RESERVED, -1), self.kinds]), device=words.device)
        kinds = table[words]
        following = torch.nn.functional.pad(kinds[:, 1:], (0, 1), value=-1)
        return kinds, (kinds == FIRST) & (following == SECOND)

    def _translate(self, words: Int[Tensor, "n place"], rng: torch.Generator) -> Int[Tensor, "n target"]:
        """One translation of each sentence, given in the translation's order."""
        kinds, pairs = self._classes(words)
        first = torch.as_tensor(self.first_forms, device=words.device)[words]
        second = torch.as_tensor(self.second_forms, device=words.device)[words]
        coin = torch.rand(*words.shape, 3, generator=rng, device=rng.device)
        swapped = pairs & (coin[..., 0] >= self.order)
        after = torch.nn.functional.pad(swapped[:, :-1], (1, 0))
        token = torch.where(swapped, first.roll(-1, 1), torch.where(after, first.roll(1, 1), first))
        other = (coin[:, :1, 1] < self.synonym) & (kinds == SYNONYM)
        token = torch.where(other, second, token)
        extra = (kinds == PARTICLE) & (coin[..., 2] < self.particle)
        return self._lay_out(token, torch.where(extra, second, PAD), kinds >= 0)

    def _lay_out(self, token: Tensor, extra: Tensor, present: Tensor) -> Int[Tensor, "n target"]:
        """Tokens and the particles behind them, one after another, then END."""
        both = torch.stack([torch.where(present, token, PAD), extra], -1).flatten(1)
        kept = both != PAD
        # A stable sort moves what is kept to the front.
        order = (~kept).long().argsort(dim=1, stable=True)
        target = torch.nn.functional.pad(both.gather(1, order), (0, 1))
        return target.scatter(1, kept.sum(1, keepdim=True), END)

    def reorder(self, source: Int[Tensor, "n source"]) -> Int[Tensor, "n source"]:
        """The words of a source in the order of the translation: each clause's first word moves to its end."""
        if not self.clauses:
            return source
        opening = RESERVED + sum(self.words)
        place = torch.arange(source.shape[1], device=source.device).expand_as(source)
        found = source
        for level in range(self.clauses):
            # Clauses are nested one inside another: the opening of level i matches the i-th closing from the right.
            opens, closes = found == opening, found == opening + 1
            depth = (opens.cumsum(1) == level + 1) & opens
            total = opens.sum(1, keepdim=True)
            shut = (closes.cumsum(1) == total - level) & closes
            inside = depth.any(1, keepdim=True)
            left, right = depth.int().argmax(1, keepdim=True), shut.int().argmax(1, keepdim=True)
            turned = torch.where((place > left) & (place < right - 1), place + 1, place)
            turned = torch.where(place == right - 1, left + 1, turned)
            found = torch.where(inside, found.gather(1, turned.clamp(max=source.shape[1] - 1)), found)
        return found

    def valid(self, source: Int[Tensor, "n source"], output: Int[Tensor, "n target"]) -> Bool[Tensor, "n"]:
        """Whether each output, up to its END, is one of the translations of its source, by dynamic programming.

        reach[z, o]: the words so far can have produced exactly the first o tokens, with synonyms z.
        """
        words = self.reorder(source)
        kinds, pairs = self._classes(words)
        first = torch.as_tensor(self.first_forms, device=source.device)[words]
        second = torch.as_tensor(self.second_forms, device=source.device)[words]
        given = torch.nn.functional.pad(output, (0, 2), value=-1)
        width = output.shape[1] + 1
        reach = torch.zeros(len(source), 2, width, dtype=torch.bool, device=source.device)
        reach[:, :, 0] = True
        now, following = given[:, None, :width], given[:, None, 1 : width + 1]
        for place in range(words.shape[1]):
            column = slice(place, place + 1)
            kind, pair = (each[:, column, None] for each in (kinds, pairs))
            one, two = (each[:, column, None] for each in (first, second))
            if place + 1 < words.shape[1]:
                next_one = first[:, place + 1 : place + 2, None]
            else:
                next_one = torch.zeros_like(one)
            both = ((now == one) & (following == next_one)) | ((now == next_one) & (following == one))
            done = pairs[:, place - 1 : place, None] if place else torch.zeros_like(pair)
            synonyms = torch.cat([one, two], 1)
            plain = reach & (now == torch.where(kind == SYNONYM, synonyms, one))
            moved = _shift(plain, 1)
            doubled = _shift(plain & (kind == PARTICLE) & (following == two), 2)
            single = torch.where(pair, _shift(reach & both, 2), moved | doubled)
            reach = torch.where((kind < 0) | done, reach, single)
        ends = output == END
        length = torch.where(ends.any(1), ends.int().argmax(1), width - 1)
        return ends.any(1) & reach.any(1).gather(1, length.unsqueeze(1)).squeeze(1)

    def oracle(self, batch: Batch) -> Float[Tensor, "n target vocab"]:
        """p(y_t | source) of every place t: the best prediction of each place on its own, as one parallel step sees it.

        Sums over z and over how many particles came before: P(o tokens before word i) by convolution.
        """
        words = self.reorder(batch.inputs)
        probs = sum(
            weight * self._place_law(words, z) for z, weight in ((0, 1 - self.synonym), (1, self.synonym)) if weight > 0
        )
        return torch.as_tensor(probs).clamp(min=1e-300).log()

    def _place_law(self, words: Int[Tensor, "n place"], z: int) -> Float[Tensor, "n target vocab"]:
        """The law of each place given the synonyms."""
        kinds, pairs = self._classes(words)
        first = torch.as_tensor(self.first_forms, device=words.device)[words]
        second = torch.as_tensor(self.second_forms, device=words.device)[words]
        n, width = len(words), self.target_length
        law = torch.zeros(n, width + 2, self.vocab, dtype=torch.float64, device=words.device)
        offset = torch.zeros(n, width + 2, dtype=torch.float64, device=words.device)
        offset[:, 0] = 1
        before = torch.zeros_like(pairs[:, 0])
        for place in range(words.shape[1]):
            kind, pair = kinds[:, place], pairs[:, place]
            token = torch.where((kind == SYNONYM) & (z == 1), second[:, place], first[:, place])
            other = first[:, place + 1] if place + 1 < words.shape[1] else torch.zeros_like(token)
            other = torch.where(before, first[:, place - 1] if place else token, other)
            swap = torch.where(pair | before, 1 - self.order, 0.0).double()
            here = offset * (kind >= 0).double().unsqueeze(1)
            _add(law, here * (1 - swap).unsqueeze(1), token)
            _add(law, here * swap.unsqueeze(1), other)
            extra = torch.where(kind == PARTICLE, self.particle, 0.0).double().unsqueeze(1)
            ahead = _shift(here, 1)
            _add(law, ahead * extra, second[:, place])
            moved = ahead * (1 - extra) + _shift(ahead * extra, 1)
            offset = torch.where((kind >= 0).unsqueeze(1), moved, offset)
            before = pair
        _add(law, offset, torch.full_like(words[:, 0], END))
        law = law[:, :width]
        law[..., PAD] += 1 - law.sum(-1)
        return law

    def independent_validity(self, pairs: int = 0, synonyms: int = 0) -> float:
        """Chance that places drawn independently from their laws are valid: AB pairs and M words of one sentence.

        (ρ² + (1 − ρ)²)^pairs · (ζ^g + (1 − ζ)^g) for g M words; at ρ = ζ = ½ it is 2^(−pairs) · 2^(1 − g).
        """
        rho, zeta = self.order, self.synonym
        agree = zeta**synonyms + (1 - zeta) ** synonyms if synonyms else 1.0
        return (rho**2 + (1 - rho) ** 2) ** pairs * agree


def _shift(values: Tensor, by: int) -> Tensor:
    """Values moved to the right along the last axis; what leaves it is lost."""
    return torch.nn.functional.pad(values[..., : values.shape[-1] - by], (by, 0))


def _add(law: Tensor, weights: Float[Tensor, "n place"], token: Int[Tensor, "n"]) -> None:
    """Add the weight of every place to one token."""
    law.scatter_add_(2, token.view(-1, 1, 1).expand(-1, weights.shape[1], 1), weights.unsqueeze(-1))
