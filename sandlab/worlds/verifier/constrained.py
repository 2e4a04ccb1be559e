"""Constrained generation: a distribution over strings and a target set, which can be hard to hit.

A constrained task is a triple (Σ, A, O): an alphabet, a target set A and an autoregressive oracle O; the answer is any
string of A with positive probability under O. Botta, Li, Mehta, Ash, Zhang & Risteski 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["AllZeros", "BitTask", "HiddenParity", "SomeZero"]

START = 2


@dataclass(frozen=True)
class BitTask(World):
    """Bit strings of one length: an oracle that writes them (uniform unless a task says otherwise) and a target set.

    A subclass gives `completable`, and may give another `next_logprobs`. Models see a start token (2)
    before the bits; the functions on prefixes are given the bits alone.
    """

    length: int = 8

    def __post_init__(self) -> None:
        integer("length", self.length, low=1)

    @property
    def vocab(self) -> int:
        return 3

    @property
    def outputs(self) -> int:
        return 2

    @property
    def letters(self) -> list[str]:
        return ["0", "1", ">"]

    def next_logprobs(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Float[Tensor, "row 2"]:
        """log O(next bit | prefix): uniform here."""
        return torch.full((len(lengths), 2), 0.5, dtype=torch.float64, device=tokens.device).log()

    def completable(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """Whether some continuation of the prefix lies in the target set: the exact process verifier."""
        raise NotImplementedError

    def contains(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """Whether the prefix is a complete string of the target set: the exact outcome verifier."""
        return self.completable(tokens, lengths) & (lengths == self.length)

    def accepts(self, tokens: Tensor) -> bool | Tensor:
        rows = tokens if tokens.ndim == 2 else tokens.unsqueeze(0)
        lengths = torch.full((len(rows),), rows.shape[1], device=rows.device)
        inside = self.contains(rows, lengths)
        return inside if tokens.ndim == 2 else bool(inside[0])

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        """Strings of the oracle (not only of the target set); truth["inside"] says which lie in it."""
        self._check_count(n)
        bits = torch.zeros(n, self.length, dtype=torch.long, device=rng.device)
        draws = torch.rand(n, self.length, generator=rng, device=rng.device, dtype=torch.float64)
        for position in range(self.length):
            lengths = torch.full((n,), position, device=rng.device)
            bits[:, position] = (draws[:, position] >= self.next_logprobs(bits, lengths)[:, 0].exp()).long()
        inputs = torch.cat([torch.full_like(bits[:, :1], START), bits[:, :-1]], 1)
        inside = self.contains(bits, torch.full((n,), self.length, device=rng.device))
        return Batch(inputs, bits, torch.ones_like(bits, dtype=torch.bool), {"inside": inside})

    def oracle(self, batch: Batch) -> Float[Tensor, "n time 2"]:
        bits = torch.cat([batch.inputs[:, 1:], torch.zeros_like(batch.inputs[:, :1])], 1)
        n, time = bits.shape
        rows = bits.repeat_interleave(time, 0)
        lengths = torch.arange(time, device=bits.device).repeat(n)
        return self.next_logprobs(rows, lengths).view(n, time, 2)

    def strings(self) -> Int[Tensor, "string length"]:
        """All 2^length bit strings, first bit most significant."""
        return (torch.arange(2**self.length).unsqueeze(1) >> torch.arange(self.length - 1, -1, -1)) & 1


@register("worlds")
@dataclass(frozen=True)
class AllZeros(BitTask):
    """Uniform bits; the target set is {0^D}. Rejection needs D·2^D queries, tokenwise rejection 2D.

    Botta, Li et al. 2025, the proposition that a process verifier saves an exponential factor.
    """

    def completable(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        return ~_inside(tokens == 1, lengths).any(1) & (lengths <= self.length)


@register("worlds")
@dataclass(frozen=True)
class SomeZero(BitTask):
    """Uniform bits; the target set A is every string with a 0.

    Tokenwise rejection gives 1^(D−1)0 twice the probability of the others: its distance to the restricted distribution
    (uniform over A) is (2^D − 2)/(2^D (2^D − 1)).
    """

    def completable(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        return (_inside(tokens == 0, lengths).any(1) | (lengths < self.length)) & (lengths <= self.length)


@register("worlds")
@dataclass(frozen=True)
class HiddenParity(BitTask):
    """Uniform bits, then a last bit that makes the parity odd, unless the first D−1 bits are the secret: then even.

    A = strings of even parity; the one string of A that the oracle can write is the secret followed by its parity.
    Every algorithm needs exponentially many queries: (2^(D−1) + 1)/2 prefixes on average for the best search without
    repetition and a uniform secret, 2^(D−1) in the worst case. Botta, Li et al. 2025, lower-bound theorem.

    secret         the D−1 hidden bits as a number, first bit most significant
    support_aware  the verifier also knows what the oracle can write, and so knows the secret
    """

    secret: int = 0
    support_aware: bool = False

    def __post_init__(self) -> None:
        integer("length", self.length, low=2)
        integer("secret", self.secret, low=0)
        hidden = self.length - 1
        require(self.secret < 2**hidden, "secret", self.secret, f"a number of {hidden} bits", f"below {2**hidden}")

    @cached_property
    def secret_bits(self) -> Int[Tensor, "hidden"]:
        return (torch.tensor(self.secret) >> torch.arange(self.length - 2, -1, -1)) & 1

    @property
    def answer(self) -> Int[Tensor, "length"]:
        """The only string of A in the oracle's support."""
        return torch.cat([self.secret_bits, self.secret_bits.sum(0, keepdim=True) % 2])

    def next_logprobs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        probs = torch.full((len(lengths), 2), 0.5, dtype=torch.float64, device=tokens.device)
        last = lengths == self.length - 1
        parity = _inside(tokens == 1, lengths).sum(1) % 2
        forced = torch.where(self._follows_secret(tokens, lengths), parity, 1 - parity)
        probs[last] = torch.nn.functional.one_hot(forced[last], 2).to(probs)
        return probs.log()

    def completable(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        even = _inside(tokens == 1, lengths).sum(1) % 2 == 0
        possible = (lengths < self.length) | ((lengths == self.length) & even)
        return possible & self._follows_secret(tokens, lengths) if self.support_aware else possible

    def _follows_secret(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Whether the prefix agrees with the secret as far as both go."""
        time = min(tokens.shape[1], self.length - 1)
        differs = tokens[:, :time] != self.secret_bits[:time].to(tokens.device)
        return ~_inside(differs, lengths).any(1)


def _inside(flags: Bool[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row time"]:
    """The flags within each row's prefix."""
    return flags & (torch.arange(flags.shape[1], device=flags.device) < lengths.unsqueeze(1))
