"""Recall tasks: induction, k-hop induction, copying, associative recall, retrieval by position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.markov.bigram_text import last_occurrence

__all__ = ["AssociativeRecall", "CopyString", "InductionTask", "KHopInduction", "NeedleRetrieval"]


def _certain(answers: Int[Tensor, "example time"], classes: int) -> Float[Tensor, "example time classes"]:
    """Log-probabilities of a certain prediction: 0 for the answer, −∞ for all other classes."""
    return F.one_hot(answers, classes).double().log()


def _distinct(n: int, count: int, among: int, rng: torch.Generator) -> Int[Tensor, "example count"]:
    """For each example, `count` distinct integers below `among` in random order."""
    if rng.device.type != "cpu":
        return torch.rand(n, among, device=rng.device, generator=rng).argsort(-1)[:, :count]
    # The first steps of a Fisher–Yates shuffle, each for all examples at once.
    uniform = torch.rand(count, n, generator=rng, dtype=torch.float64).numpy()
    deck = np.repeat(np.arange(among), n)
    example = np.arange(n)
    for step in range(count):
        other = (step + (uniform[step] * (among - step)).astype(np.int64)) * n + example
        chosen = deck.take(other)
        deck[other] = deck[step * n : (step + 1) * n]
        deck[step * n : (step + 1) * n] = chosen
    return torch.from_numpy(np.ascontiguousarray(deck.reshape(among, n)[:count].T))


@register("worlds")
@dataclass(frozen=True)
class InductionTask(World):
    """… A B … A → B: the last token occurred once before; the answer is the token that followed it then.

    states  alphabet size; length: number of tokens, including the final A

    A is uniform, its earlier position is uniform among those that leave room for B before the final A, and every other
    token is uniform over the rest of the alphabet. One answer, at the last position. truth["position"]: index of the
    earlier A.

    Source: Sanford, Hsu and Telgarsky 2024; Olsson et al. 2022.
    """

    states: int = 16
    length: int = 32

    def __post_init__(self) -> None:
        integer("states", self.states, low=2)
        integer("length", self.length, low=3)

    @property
    def vocab(self) -> int:
        return self.states

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        query = torch.randint(0, self.states, (n, 1), generator=rng, device=rng.device)
        tokens = torch.randint(0, self.states - 1, (n, self.length), generator=rng, device=rng.device)
        tokens = tokens + (tokens >= query)  # uniform over the tokens other than A
        position = torch.randint(0, self.length - 2, (n, 1), generator=rng, device=rng.device)
        tokens.scatter_(1, position, query)
        tokens[:, -1:] = query
        answer = tokens.gather(1, position + 1)
        return Batch(tokens, answer, torch.ones_like(answer, dtype=torch.bool), {"position": position.squeeze(-1)})

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 states"]:
        before = last_occurrence(batch.inputs)[:, -1:]
        return _certain(batch.inputs.gather(1, before + 1), self.states)


@register("worlds")
@dataclass(frozen=True)
class KHopInduction(World):
    """The induction head applied k times: find(i) = max{j ≤ i : x_{j−1} = x_i}, the answer at i is x_{find^k(i)}.

    states  alphabet size of the uniform tokens; hops: k (k = 1 is the induction head); length: number of tokens

    Every position has an answer; class `states` means that one of the hops finds nothing. truth["found"]: find^k(i),
    −1 where there is none.

    Source: Sanford, Hsu and Telgarsky 2024, "Transformers, parallel computation, and logarithmic depth".
    """

    states: int = 4
    hops: int = 2
    length: int = 32

    def __post_init__(self) -> None:
        integer("states", self.states, low=2)
        integer("hops", self.hops, low=1)
        integer("length", self.length, low=2)

    @property
    def vocab(self) -> int:
        return self.states

    @property
    def outputs(self) -> int:
        return self.states + 1

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        tokens = torch.randint(0, self.states, (n, self.length), generator=rng, device=rng.device)
        found = self.find(tokens)
        mask = torch.ones_like(tokens, dtype=torch.bool)
        return Batch(tokens, self._answers(tokens, found), mask, {"found": found})

    def find(self, tokens: Int[Tensor, "example time"]) -> Int[Tensor, "example time"]:
        """find^k of every position, −1 where there is none."""
        before = last_occurrence(tokens)
        hop = torch.where(before >= 0, before + 1, -1)
        found = hop
        for _ in range(self.hops - 1):
            found = torch.where(found >= 0, hop.gather(1, found.clamp(min=0)), -1)
        return found

    def oracle(self, batch: Batch) -> Float[Tensor, "example time outputs"]:
        return _certain(self._answers(batch.inputs, self.find(batch.inputs)), self.outputs)

    def _answers(self, tokens: Tensor, found: Tensor) -> Tensor:
        return torch.where(found >= 0, tokens.gather(1, found.clamp(min=0)), self.states)


@register("worlds")
@dataclass(frozen=True)
class CopyString(World):
    """A random string, a separator, and the string again: inputs s_1 … s_n # s_1 … s_{n−1}, answers s_1 … s_n.

    states    alphabet size; the separator is token `states`
    size      n, length of the string
    distinct  no repeated token (needs states ≥ size): induction heads then suffice for copying

    Source: Jelassi et al. 2024, "Repeat after me".
    """

    states: int = 16
    size: int = 16
    distinct: bool = False

    def __post_init__(self) -> None:
        integer("states", self.states, low=1)
        integer("size", self.size, low=1)
        fits = not self.distinct or self.states >= self.size
        require(fits, "distinct", True, f"False unless states ({self.states}) is at least size ({self.size})")

    @property
    def length(self) -> int:
        return 2 * self.size

    @property
    def vocab(self) -> int:
        return self.states + 1

    @property
    def letters(self) -> list[str]:
        return [*map(str, range(self.states)), "#"]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        if self.distinct:
            string = _distinct(n, self.size, self.states, rng)
        else:
            string = torch.randint(0, self.states, (n, self.size), generator=rng, device=rng.device)
        separator = torch.full((n, 1), self.states, device=rng.device)
        tokens = torch.cat([string, separator, string[:, :-1]], 1)
        return Batch(tokens, string, torch.ones_like(string, dtype=torch.bool))

    def oracle(self, batch: Batch) -> Float[Tensor, "example size vocab"]:
        return _certain(batch.inputs[:, : self.size], self.vocab)


@register("worlds")
@dataclass(frozen=True)
class AssociativeRecall(World):
    """Multi-query associative recall: k_1 v_1 … k_N v_N, then M of the keys again, each to be answered by its value.

    keys, values    alphabet sizes; keys are tokens 0 … keys − 1, followed by the values
    pairs, queries  N pairs with distinct keys; M queries, distinct if M ≤ N, otherwise drawn with replacement

    One answer per query, at the last M positions. truth["queried"]: index of the pair that each query refers to.

    Source: Arora et al. 2024, "Zoology: measuring and improving recall in efficient language models".
    """

    keys: int = 16
    values: int = 16
    pairs: int = 8
    queries: int = 4

    def __post_init__(self) -> None:
        integer("values", self.values, low=1)
        integer("pairs", self.pairs, low=1)
        integer("keys", self.keys, low=self.pairs, hint="keys are distinct: there must be one for each pair")
        integer("queries", self.queries, low=1)

    @property
    def length(self) -> int:
        return 2 * self.pairs + self.queries

    @property
    def vocab(self) -> int:
        return self.keys + self.values

    @property
    def letters(self) -> list[str]:
        return [*(f"k{key}" for key in range(self.keys)), *(f"v{value}" for value in range(self.values))]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        keys = _distinct(n, self.pairs, self.keys, rng)
        values = torch.randint(self.keys, self.vocab, (n, self.pairs), generator=rng, device=rng.device)
        if self.queries <= self.pairs:
            queried = _distinct(n, self.queries, self.pairs, rng)
        else:
            queried = torch.randint(0, self.pairs, (n, self.queries), generator=rng, device=rng.device)
        tokens = torch.cat([torch.stack([keys, values], -1).flatten(1), keys.gather(1, queried)], 1)
        answers = values.gather(1, queried)
        return Batch(tokens, answers, torch.ones_like(answers, dtype=torch.bool), {"queried": queried})

    def oracle(self, batch: Batch) -> Float[Tensor, "example queries vocab"]:
        context, queries = batch.inputs[:, : 2 * self.pairs], batch.inputs[:, 2 * self.pairs :]
        index = (context[:, None, 0::2] == queries.unsqueeze(-1)).double().argmax(-1)
        return _certain(context[:, 1::2].gather(1, index), self.vocab)


@register("worlds")
@dataclass(frozen=True)
class NeedleRetrieval(World):
    """A random string followed by an index: s_1 … s_n i → s_i. The INDEX problem of communication complexity.

    states  alphabet size of the string; size: n, its length. Indices are tokens states … states + n − 1.

    One answer, at the last position. truth["index"]: i, counted from 0.

    Source: Arora et al. 2024; Sanford, Hsu and Telgarsky 2024 (reduction of INDEX to induction).
    """

    states: int = 2
    size: int = 16

    def __post_init__(self) -> None:
        integer("states", self.states, low=1)
        integer("size", self.size, low=1)

    @property
    def length(self) -> int:
        return self.size + 1

    @property
    def vocab(self) -> int:
        return self.states + self.size

    @property
    def letters(self) -> list[str]:
        return [*map(str, range(self.states)), *(f"@{index}" for index in range(self.size))]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        string = torch.randint(0, self.states, (n, self.size), generator=rng, device=rng.device)
        index = torch.randint(0, self.size, (n, 1), generator=rng, device=rng.device)
        answer = string.gather(1, index)
        mask = torch.ones_like(answer, dtype=torch.bool)
        return Batch(torch.cat([string, self.states + index], 1), answer, mask, {"index": index.squeeze(-1)})

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 vocab"]:
        index = batch.inputs[:, -1:] - self.states
        return _certain(batch.inputs.gather(1, index), self.vocab)
