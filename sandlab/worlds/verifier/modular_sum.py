"""A constrained task with any alphabet and an oracle that never writes some strings of the target set."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["ModularSum"]


@register("worlds")
@dataclass(frozen=True)
class ModularSum(World):
    """Strings of k letters whose sum is r modulo k; after letter a the oracle never writes (a + skip) mod k.

    The other letters are equally likely, and at the beginning all of them. A = {s : Σ s_i ≡ r (mod k)} has k^(D−1)
    strings, of which the oracle writes about ((k−1)/k)^(D−1): an element of A with probability 0 is no solution
    (Botta, Li et al. 2025, Definition of constrained generation). The process verifier of `completable` speaks about A
    alone and can lead into a position that only forbidden letters complete; with `support_aware` it knows the oracle.

    letters         k
    length          D
    target          r
    skip            which letter may not follow
    support_aware   the verifier also knows what the oracle can write
    """

    letters_count: int = 3
    length: int = 6
    target: int = 0
    skip: int = 0
    support_aware: bool = False

    def __post_init__(self) -> None:
        integer("letters_count", self.letters_count, low=2)
        integer("length", self.length, low=2)
        k = self.letters_count
        require(0 <= self.target < k, "target", self.target, f"a remainder modulo {k}")
        require(0 <= self.skip < k, "skip", self.skip, f"between 0 and {k - 1}")

    @property
    def vocab(self) -> int:
        return self.letters_count + 1

    @property
    def outputs(self) -> int:
        return self.letters_count

    @property
    def letters(self) -> list[str]:
        return [*(chr(97 + index % 26) for index in range(self.letters_count)), ">"]

    def next_logprobs(
        self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]
    ) -> Float[Tensor, "row letter"]:
        """log O(next letter | prefix)."""
        k = self.letters_count
        probs = torch.full((len(lengths), k), 1 / (k - 1), dtype=torch.float64, device=tokens.device)
        begun = lengths > 0
        probs[~begun] = 1 / k
        if bool(begun.any()):
            last = tokens[begun].gather(1, lengths[begun].unsqueeze(1) - 1)
            probs[begun] = probs[begun].scatter(1, (last + self.skip) % k, 0.0)
        return probs.log()

    def completable(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """Whether some continuation of the prefix lies in A (that the oracle can write, if support_aware)."""
        inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths.unsqueeze(1)
        total = torch.where(inside, tokens, 0).sum(1) % self.letters_count
        left = self.length - lengths
        alive = (left > 0) | ((left == 0) & (total == self.target))
        if not self.support_aware:
            return alive
        last = tokens.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
        reach = self._reachable.to(tokens.device)
        open_end = torch.where(lengths > 0, reach[left.clamp(min=0), last, total], True)
        return self.possible(tokens, lengths) & (left >= 0) & open_end

    def contains(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """Whether the prefix is a complete string of A that the oracle writes: a solution of the task."""
        inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths.unsqueeze(1)
        total = torch.where(inside, tokens, 0).sum(1) % self.letters_count
        return (lengths == self.length) & (total == self.target) & self.possible(tokens, lengths)

    def possible(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """Whether the oracle gives the prefix positive probability."""
        follows = (tokens[:, 1:] - tokens[:, :-1] - self.skip) % self.letters_count == 0
        inside = torch.arange(1, tokens.shape[1], device=tokens.device) < lengths.unsqueeze(1)
        return ~(follows & inside).any(1)

    @property
    def _reachable(self) -> Bool[Tensor, "left last total"]:
        """Whether `left` more letters after `last` can bring the sum from `total` to the target."""
        k = self.letters_count
        table = torch.zeros(self.length + 1, k, k, dtype=torch.bool)
        table[0, :, self.target] = True
        for left in range(1, self.length + 1):
            for last in range(k):
                for letter in (each for each in range(k) if each != (last + self.skip) % k):
                    table[left, last] |= table[left - 1, letter].roll(-letter)
        return table

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        """Strings of the oracle; truth["inside"] says which lie in A."""
        self._check_count(n)
        device, k = rng.device, self.letters_count
        text = torch.zeros(n, self.length, dtype=torch.long, device=device)
        text[:, 0] = torch.randint(k, (n,), generator=rng, device=device)
        steps = torch.randint(1, k, (n, self.length), generator=rng, device=device)
        text = (text[:, :1] + torch.cat([torch.zeros_like(steps[:, :1]), steps[:, 1:] + self.skip], 1).cumsum(1)) % k
        inputs = torch.cat([torch.full_like(text[:, :1], k), text[:, :-1]], 1)
        inside = self.contains(text, torch.full((n,), self.length, device=device))
        return Batch(inputs, text, torch.ones_like(text, dtype=torch.bool), {"inside": inside})
