"""Verifiers and value functions: how good is a prefix?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.decoding._session.streams import hashed_prefix, mix, to_unit
from sandlab.errors import BadInput, integer, number
from sandlab.worlds.base import World

__all__ = ["FunctionVerifier", "LanguageVerifier", "NoisyVerifier", "RandomVerifier", "TextVerifier", "Verifier"]


class Verifier:
    """A number for each prefix: 1 or 0 when exact, a probability when trained, any V ≥ 0 when a value function.

    exact process verifier   V(s) = 1 if some continuation of s lies in the target set, else 0
    trained verifier         V(s) = estimated probability that s can still be completed correctly
    value function           V(s) = E[tilt of the complete string | s] under the generator
    outcome verifier         `outcome`, asked for complete strings only

    A subclass gives `value`; `children` (all one-token extensions at once) and `outcome` where it can do better than
    the defaults here. `knows_ends`: its `children` give end tokens their outcome already.
    """

    knows_ends: ClassVar[bool] = False

    def start(self, strings: int, capacity: int) -> None:
        """A batch of `strings` strings of at most `capacity` tokens begins."""

    def value(
        self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"], rows: Int[Tensor, "row"]
    ) -> Float[Tensor, "row"]:
        raise NotImplementedError

    def outcome(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Float[Tensor, "row"]:
        """The tilt of complete strings: membership for a language."""
        return self.value(tokens, lengths, rows)

    def children(self, tokens: Tensor, lengths: Tensor, rows: Tensor, vocab: int) -> Float[Tensor, "row vocab"]:
        """V(s∘a) for every token a."""
        wide = extended(tokens, lengths, torch.arange(vocab, device=tokens.device))
        values = self.value(wide, lengths.repeat_interleave(vocab) + 1, rows.repeat_interleave(vocab))
        return values.view(len(tokens), vocab)

    def child_outcomes(
        self, tokens: Tensor, lengths: Tensor, rows: Tensor, letters: Int[Tensor, "letter"]
    ) -> Float[Tensor, "row letter"]:
        """The outcome of each string followed by each of these letters."""
        count = len(letters)
        wide = extended(tokens, lengths, letters)
        values = self.outcome(wide, lengths.repeat_interleave(count) + 1, rows.repeat_interleave(count))
        return values.view(len(tokens), count)


def extended(
    tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"], letters: Int[Tensor, "letter"]
) -> Int[Tensor, "row_letter longer"]:
    """Every prefix followed by every letter, the letters of one prefix in consecutive rows."""
    count = len(letters)
    wide = torch.cat([tokens, tokens.new_zeros(len(tokens), 1)], 1).repeat_interleave(count, 0)
    wide[torch.arange(len(wide), device=wide.device), lengths.repeat_interleave(count)] = letters.repeat(len(tokens))
    return wide


class TextVerifier(Verifier):
    """A function of the text written so far as a verifier: the prompt's tokens are left out, the rest is decoded.

    read      tokens → text, for instance `LanguageModel.decode`
    starts    where each string's text begins
    The function is called once per string, and |Σ| times where all one-token extensions are asked for.
    """

    def __init__(
        self, function: Callable[[str], float], read: Callable[[Sequence[int]], str], starts: Sequence[int]
    ) -> None:
        self.function, self.read, self.starts = function, read, list(starts)

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        listed = zip(tokens.tolist(), lengths.tolist(), rows.tolist())
        texts = [self.read(string[self.starts[row] : cut]) for string, cut, row in listed]
        return torch.tensor([float(self.function(text)) for text in texts], dtype=torch.float64, device=tokens.device)


class FunctionVerifier(Verifier):
    """Any functions of (tokens, lengths) as `value` and, if given, `outcome`."""

    def __init__(
        self, value: Callable[[Tensor, Tensor], Tensor], outcome: Callable[[Tensor, Tensor], Tensor] | None = None
    ) -> None:
        self._value, self._outcome = value, outcome or value

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self._value(tokens, lengths).to(torch.float64)

    def outcome(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self._outcome(tokens, lengths).to(torch.float64)


@runtime_checkable
class Language(Protocol):
    """A world that knows which prefixes can be completed to a word, and which strings are words."""

    def completable(self, tokens: Tensor, lengths: Tensor) -> Tensor: ...

    def contains(self, tokens: Tensor, lengths: Tensor) -> Tensor: ...


class LanguageVerifier(FunctionVerifier):
    """The exact process verifier of a world that is a language: V(s) = 1 if s can be completed to a word, else 0.

    Uses the world's `completable(tokens, lengths)` and, for complete strings, `contains(tokens, lengths)`.
    """

    def __init__(self, world: World | Language) -> None:
        if not isinstance(world, Language):
            raise BadInput(f"{type(world).__name__} has no completable and contains: it cannot verify prefixes")
        super().__init__(world.completable, world.contains)


class RandomVerifier(Verifier):
    """V(s) uniform in [0, 1], fresh at each question: rejects with probability τ. The control for a trained one."""

    def __init__(self, seed: int = 0) -> None:
        self.seed, self.asked = integer("seed", seed, low=0), 0

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        self.asked += 1
        return to_unit(mix(hashed_prefix(tokens, lengths, self.seed) + mix(rows + (self.asked << 32))))


class NoisyVerifier(Verifier):
    """An exact verifier that errs: each verdict is flipped with probability `error`.

    The error belongs to the prefix (asking again gives the same answer) unless `fresh`, when each question errs anew.
    Complete strings are judged without error when `exact_outcome`, which is what outcome rewards are in practice: a
    finished answer can be checked.

    prior   None: bare verdicts, 0 or 1. A probability that a prefix is good before it is judged: the value is then the
            probability that it is good given the verdict (Bayes): a wrong "no" makes it unlikely, not impossible
    """

    def __init__(
        self,
        exact: Verifier,
        error: float,
        *,
        seed: int = 0,
        fresh: bool = False,
        prior: float | None = None,
        exact_outcome: bool = True,
    ) -> None:
        self.exact, self.error = exact, number("error", error, low=0.0, high=1.0)
        self.seed, self.fresh = integer("seed", seed, low=0), fresh
        self.prior = None if prior is None else number("prior", prior, low=0.0, high=1.0)
        self.exact_outcome, self.asked = exact_outcome, 0

    def start(self, strings: int, capacity: int) -> None:
        self.exact.start(strings, capacity)

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self._flip(self.exact.value(tokens, lengths, rows), self._fingerprint(tokens, lengths))

    def outcome(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        exact = self.exact.outcome(tokens, lengths, rows)
        return exact if self.exact_outcome else self._flip(exact, self._fingerprint(tokens, lengths))

    def children(self, tokens: Tensor, lengths: Tensor, rows: Tensor, vocab: int) -> Tensor:
        verdicts = self.exact.children(tokens, lengths, rows, vocab)
        parents = hashed_prefix(tokens, lengths, self.seed).unsqueeze(1)
        return self._flip(verdicts, mix(parents + mix(torch.arange(1, vocab + 1, device=tokens.device))))

    def _fingerprint(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        # Built from the parent's fingerprint and the last token, so that `value` and `children` err alike.
        parent = hashed_prefix(tokens, (lengths - 1).clamp(min=0), self.seed)
        last = tokens.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
        return torch.where(lengths > 0, mix(parent + mix(last + 1)), parent)

    def _flip(self, verdict: Tensor, fingerprint: Tensor) -> Tensor:
        if self.fresh:
            self.asked += 1
            fingerprint = mix(fingerprint + mix(torch.full_like(fingerprint, self.asked)))
        wrong = to_unit(fingerprint) < self.error
        yes = (verdict > 0) != wrong
        if self.prior is None:
            return yes.to(torch.float64)
        good, bad = self.prior, 1 - self.prior
        if_yes = good * (1 - self.error) / (good * (1 - self.error) + bad * self.error)
        if_no = good * self.error / (good * self.error + bad * (1 - self.error))
        return if_no + (if_yes - if_no) * yes.to(torch.float64)
