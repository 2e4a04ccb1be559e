"""Many walks whose every distinct prefix is read once: what `VGB` and `ValueGuided` do, without waiting for each other.

The decoders move all strings of a batch together, and a move costs a dozen tensor operations even where everything is
remembered, which it nearly always is. Here each string moves by itself, in plain Python, until it comes to a prefix
that no string has come to; such prefixes are then read together. Random numbers, moves, strings and counts are those
of the decoders with children="sampled" and a memory (a test compares them): every string still pays for what it would
have read alone.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Generator as Coroutine
from collections.abc import Iterator, Sequence
from itertools import count

import torch
from torch import Tensor

from sandlab.decoding._session.streams import Streams
from sandlab.decoding.decoders.base import warp_logits
from sandlab.decoding.decoders.walks import VGB, ValueGuided
from sandlab.decoding.generators.neural import ModelGenerator
from sandlab.decoding.verifiers.values import ValueFunction

BLOCK = 256  # random numbers of one string that are made at once
# A string at work hands out the prefix that must be read before it goes on.
Asking = Coroutine["Prefix", None, None]


class Prefix:
    """A node of the tree: its value and, if it is not a whole string, the cumulative distribution of the next token."""

    __slots__ = ("children", "length", "limit", "parent", "sums", "token", "value", "whole")

    def __init__(self, parent: Prefix | None, token: int, length: int, limit: int, whole: bool) -> None:
        self.parent, self.token, self.length, self.limit, self.whole = parent, token, length, limit, whole
        self.children: dict[int, Prefix] = {}
        self.value: float | None = None
        self.sums: array[float] | None = None

    def child(self, token: int, end: int) -> Prefix:
        if token not in self.children:
            length = self.length + 1
            self.children[token] = Prefix(self, token, length, self.limit, token == end or length >= self.limit)
        return self.children[token]

    def written(self) -> list[int]:
        """The tokens after the prompt."""
        tokens, node = [], self
        while node.parent is not None:
            tokens.append(node.token)
            node = node.parent
        return tokens[::-1]


class String:
    """One string of a batch: where it is, and what it has paid.

    calls         prefixes whose next token it asked for; asked: those whose value it asked for
    evaluations   passes of the network that it would have needed alone: a prefix just read is not read again
    """

    def __init__(self, root: Prefix, prompt: Sequence[int], key: Tensor, end: int) -> None:
        self.root = self.at = root
        self.prompt, self.end, self.numbers = list(prompt), end, _numbers(key)
        self.laws: set[Prefix] = set()
        self.values: set[Prefix] = set()
        self.read: Prefix | None = None
        self.calls = self.asked = self.evaluations = 0
        self.done = False

    def try_child(self) -> Coroutine[Prefix, None, Prefix | None]:
        """Draw a child and enter it with the probability of its value; None if it was not entered."""
        node, numbers = self.at, self.numbers
        if node not in self.laws:
            self.laws.add(node)
            self.calls += 1
            self._pay(node)
            if node.sums is None:
                yield node
        assert node.sums is not None
        place = bisect_right(node.sums, next(numbers) * node.sums[-1])
        child = node.child(min(place, len(node.sums) - 1), self.end)
        if child not in self.values:
            self.values.add(child)
            self.asked += 1
            if not child.whole:
                self._pay(child)
            if child.value is None:
                yield child
        assert child.value is not None
        if next(numbers) >= child.value:
            return None
        self.at = child
        return child

    def climb(self) -> None:
        assert self.at.parent is not None
        self.at = self.at.parent

    def _pay(self, node: Prefix) -> None:
        if self.read is not node:
            self.read = node
            self.evaluations += 1


def _numbers(key: Tensor) -> Iterator[float]:
    """The random numbers of a string in a decoder's session, one after the other."""
    rows = torch.arange(BLOCK)
    for first in count(0, BLOCK):
        block = Streams(key.expand(BLOCK))
        block.drawn = rows + first
        yield from block.uniform(rows).tolist()


def walk(string: String, steps: int, budget: float) -> Asking:
    """`VGB`: lazy steps to the parent or a child until a leaf is reached, at the end of its padded branch."""
    clock, numbers = 0, string.numbers
    while string.calls < budget:
        clock += math.floor(math.log2(1 / (1 - next(numbers)))) + 1
        if clock > steps:
            return
        up = 0.0 if string.at is string.root else string.at.value or 0.0
        if next(numbers) * (1 + up) < up:
            string.climb()
            continue
        child = yield from string.try_child()
        if child is None or not child.whole:
            continue
        if next(numbers) * (child.limit - child.length + 1) < 1:
            string.done = True
            return
        string.climb()


def guided(string: String, tries: int, draws: int, budget: float) -> Asking:
    """`ValueGuided`: never back, begun anew after too many draws at one place."""
    tried, refused = 1, 0
    while string.calls < budget:
        child = yield from string.try_child()
        refused = 0 if child is not None else refused + 1
        if child is not None and child.whole:
            string.done = True
            return
        if refused == draws:
            if tried == tries:
                return
            string.at, refused, tried = string.root, 0, tried + 1


class Forest:
    """The prefixes of all prompts, what is known about them, and the network that knows more."""

    def __init__(self, generator: ModelGenerator, guide: ValueFunction, end: int) -> None:
        self.generator, self.guide, self.end = generator, guide, end
        self.roots: dict[tuple[int, ...], Prefix] = {}

    def run(
        self, decoder: VGB | ValueGuided, prompts: list[list[int]], rooms: list[int], rng: torch.Generator, budget: int
    ) -> list[String]:
        """Let every prompt's string run to its end."""
        keys = Streams.from_rng(len(prompts), rng).keys.cpu()
        strings = [
            String(self._root(prompt, room), prompt, key, self.end) for prompt, room, key in zip(prompts, rooms, keys)
        ]
        self._start(strings)
        running = {row: _begin(decoder, string, budget) for row, string in enumerate(strings)}
        while running:
            wanted = {row: prefix for row, work in running.items() if (prefix := next(work, None)) is not None}
            self._answer(strings, wanted)
            running = {row: running[row] for row in wanted}
        return strings

    def _root(self, prompt: list[int], room: int) -> Prefix:
        key = tuple(prompt)
        if key not in self.roots:
            self.roots[key] = Prefix(None, -1, len(prompt), len(prompt) + room, False)
        return self.roots[key]

    def _start(self, strings: list[String]) -> None:
        """Every string's own cache has read its prompt, equal prompts together."""
        self.generator.start(len(strings), max(string.root.limit for string in strings))
        tokens, lengths = self._tensors([(string, string.root) for string in strings])
        self.generator.next_logprobs(tokens, lengths, torch.arange(len(strings), device=lengths.device))

    @torch.no_grad()
    def _answer(self, strings: list[String], wanted: dict[int, Prefix]) -> None:
        """Find out about these prefixes, each by one of the strings that want it."""
        askers = {prefix: row for row, prefix in wanted.items()}
        whole = [(strings[row], prefix) for prefix, row in askers.items() if prefix.whole]
        if whole:
            tokens, lengths = self._tensors(whole)
            outcomes = self.guide.outcome(tokens, lengths, torch.arange(len(whole), device=lengths.device))
            for (_, prefix), outcome in zip(whole, outcomes.tolist()):
                prefix.value = outcome
        inner = {prefix: row for prefix, row in askers.items() if not prefix.whole}
        if inner:
            tokens, lengths = self._tensors([(strings[row], prefix) for prefix, row in inner.items()])
            rows = torch.tensor(list(inner.values()), device=lengths.device)
            values = self.guide.value(tokens, lengths, rows).tolist()
            laws = warp_logits(self.generator.next_logprobs(tokens, lengths, rows), 1.0, 1.0)
            for prefix, value, sums in zip(inner, values, laws.exp().cumsum(-1).tolist()):
                prefix.value, prefix.sums = value, array("d", sums)

    def _tensors(self, asked: list[tuple[String, Prefix]]) -> tuple[Tensor, Tensor]:
        texts = [string.prompt + prefix.written() for string, prefix in asked]
        width, device = max(map(len, texts)), self.generator.device
        tokens = torch.tensor([text + [0] * (width - len(text)) for text in texts], device=device)
        return tokens, torch.tensor([len(text) for text in texts], device=device)


def _begin(decoder: VGB | ValueGuided, string: String, budget: int) -> Asking:
    if isinstance(decoder, VGB):
        assert decoder.max_steps is not None
        return walk(string, decoder.max_steps, budget)
    return guided(string, decoder.max_tries, decoder.max_draws, budget)
