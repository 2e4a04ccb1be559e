"""Probabilistic context-free grammars: text format, cut at a depth, and exact statistics of their sentences."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from sandlab.errors import BadInput, integer, require

__all__ = ["PCFG", "Production"]

_ARROW = re.compile(r"→|->")
_SHARE = re.compile(r"\[([^\]]+)\]\s*$")


@dataclass(frozen=True)
class Production:
    """A rule: `parent` becomes `children` with probability `prob`."""

    parent: str
    children: tuple[str, ...]
    prob: float


@dataclass(frozen=True)
class PCFG:
    """A grammar (N, v, R, P): every non-terminal is replaced by a rule drawn from P(· | it) until only terminals stay.

    rules   the rules; those of one symbol have probabilities that sum to 1
    start   the symbol every derivation begins with

    Symbols without rules are the terminals. Terminals are numbered in sorted order (numbers by value).
    """

    rules: tuple[Production, ...]
    start: str

    def __post_init__(self) -> None:
        require(self.start in self.by_symbol, "start", self.start, "a symbol that has rules")
        for symbol, rules in self.by_symbol.items():
            total = sum(rule.prob for rule in rules)
            good = abs(total - 1) < 1e-9 and all(rule.prob >= 0 and rule.children for rule in rules)
            require(good, f"rules of {symbol}", total, "non-empty, with probabilities that sum to 1")

    # ------------------------------------------------------------------ reading and writing

    @classmethod
    def parse(cls, text: str, *, start: str | None = None) -> PCFG:
        """Read "S → NP VP [0.7] | VP [0.3]; NP → …": rules end with ";" or a line; equal shares unless given.

        "->" may be written for the arrow. The start is the first symbol unless given; symbols that it does not reach
        are left out.
        """
        rules: list[Production] = []
        for line in filter(str.strip, re.split(r"[;\n]", text)):
            parts = _ARROW.split(line)
            if len(parts) != 2 or not parts[0].strip():
                raise BadInput(f"a rule is written 'A → B C | D', got {line.strip()!r}")
            rules += _alternatives(parts[0].strip(), parts[1].split("|"))
        if not rules:
            raise BadInput("a grammar needs at least one rule, such as 'S → a b | a'")
        return cls(_reachable(rules, start or rules[0].parent), start or rules[0].parent)

    def __str__(self) -> str:
        lines = []
        for symbol, rules in self.by_symbol.items():
            even = all(abs(rule.prob * len(rules) - 1) < 1e-12 for rule in rules)
            sides = [" ".join(rule.children) + ("" if even else f" [{rule.prob:.17g}]") for rule in rules]
            lines.append(f"{symbol} → {' | '.join(sides)}")
        return "\n".join(lines)

    def rooted(self, start: str) -> PCFG:
        """The grammar of one symbol's sentences."""
        require(start in self.by_symbol, "start", start, f"one of {', '.join(self.by_symbol)}")
        return PCFG(_reachable(self.rules, start), start)

    def cut(self, depth: int) -> PCFG:
        """Derivations of at most `depth` rule applications on each path, with their probabilities renormalised.

        Z_d(A) = Σ_rules P ∏ Z_{d−1}(child) is the mass that stays; symbol A with d applications left is "A@d".
        """
        integer("depth", depth, low=1)
        mass: dict[tuple[str, int], float] = {}

        def kept(symbol: str, left: int) -> float:
            if symbol not in self.by_symbol:
                return 1.0
            if left == 0:
                return 0.0
            if (symbol, left) not in mass:
                rules = self.by_symbol[symbol]
                mass[symbol, left] = sum(r.prob * np.prod([kept(c, left - 1) for c in r.children]) for r in rules)
            return mass[symbol, left]

        if kept(self.start, depth) == 0:
            raise BadInput(f"no derivation of {self.start} ends within depth {depth}: cut deeper")
        rules = [
            Production(f"{parent}@{left}", tuple(_at(c, left - 1, self.by_symbol) for c in rule.children), share)
            for (parent, left), total in mass.items()
            if total > 0
            for rule in self.by_symbol[parent]
            if (share := rule.prob * float(np.prod([kept(c, left - 1) for c in rule.children])) / total) > 0
        ]
        return PCFG(_reachable(rules, f"{self.start}@{depth}"), f"{self.start}@{depth}")

    # ------------------------------------------------------------------ structure

    @cached_property
    def by_symbol(self) -> dict[str, tuple[Production, ...]]:
        """Non-terminal → its rules, in the order of writing."""
        found: dict[str, list[Production]] = defaultdict(list)
        for rule in self.rules:
            found[rule.parent].append(rule)
        return {symbol: tuple(rules) for symbol, rules in found.items()}

    @cached_property
    def terminals(self) -> tuple[str, ...]:
        words = {child for rule in self.rules for child in rule.children} - set(self.by_symbol)
        return tuple(sorted(words, key=lambda word: (0, int(word), "") if word.isdecimal() else (1, 0, word)))

    @cached_property
    def heights(self) -> dict[str, int]:
        """Symbol → layers of nodes below and including it, at most: terminals 1 (refused for recursive grammars)."""
        found = dict.fromkeys(self.terminals, 1)
        for symbol in self.bottom_up:
            found[symbol] = 1 + max(found[child] for rule in self.by_symbol[symbol] for child in rule.children)
        return found

    @cached_property
    def bottom_up(self) -> tuple[str, ...]:
        """Non-terminals, children before parents."""
        order: list[str] = []
        known = set(self.terminals)
        while len(order) < len(self.by_symbol):
            ready = [
                symbol
                for symbol, rules in self.by_symbol.items()
                if symbol not in known and all(child in known for rule in rules for child in rule.children)
            ]
            if not ready:
                raise BadInput("the grammar is recursive: give it a largest depth with cut(depth)")
            order += ready
            known.update(ready)
        return tuple(order)

    @property
    def layered(self) -> bool:
        """Whether every child lies exactly one height below its parent, as in grammars of fixed depth."""
        heights = self.heights
        return all(heights[c] == heights[r.parent] - 1 for r in self.rules for c in r.children)

    def spans(self, symbol: str) -> tuple[int, int]:
        """Shortest and longest sentence of a symbol."""
        lengths = self.length_laws[symbol]
        return int(np.flatnonzero(lengths)[0]), len(lengths) - 1

    # ------------------------------------------------------------------ exact statistics

    @cached_property
    def length_laws(self) -> dict[str, Float[np.ndarray, "_length"]]:
        """Symbol → P(length = 0, 1, 2, …): products of rules are convolutions."""
        found: dict[str, np.ndarray] = {word: np.array([0.0, 1.0]) for word in self.terminals}
        for symbol in self.bottom_up:
            parts = [
                rule.prob * _convolved([found[child] for child in rule.children]) for rule in self.by_symbol[symbol]
            ]
            found[symbol] = sum((np.pad(part, (0, max(map(len, parts)) - len(part))) for part in parts), np.zeros(1))
        return found

    @property
    def lengths(self) -> Float[np.ndarray, "length"]:
        """P(length) of a sentence."""
        return self.length_laws[self.start]

    def length_percentile(self, percent: float) -> int:
        """Smallest length that at least so many percent of the sentences do not exceed."""
        return int(np.searchsorted(self.lengths.cumsum(), percent / 100 - 1e-12))

    @cached_property
    def expected_counts(self) -> Float[np.ndarray, "terminal"]:
        """Expected number of each terminal in a sentence."""
        found = dict(zip(self.terminals, np.eye(len(self.terminals))))
        for symbol in self.bottom_up:
            found[symbol] = sum(
                (rule.prob * found[child] for rule in self.by_symbol[symbol] for child in rule.children),
                np.zeros(len(self.terminals)),
            )
        return found[self.start]

    @property
    def unigram(self) -> Float[np.ndarray, "terminal"]:
        """Share of each terminal among the tokens of the language."""
        return self.expected_counts / self.expected_counts.sum()

    def ngrams(self, n: int, *, padding: int = 0) -> Float[np.ndarray, "..."]:
        """Expected number of each n-gram in a sentence, as an array with n axes of terminals.

        With padding, `padding` start marks (index v) and end marks (index v + 1) stand around the sentence.
        """
        integer("n", n, low=1)
        size = len(self.terminals) + (2 if padding else 0)
        edges = {word: _word_edges(n, index) for index, word in enumerate(self.terminals)}
        for symbol in self.bottom_up:
            rules = self.by_symbol[symbol]
            edges[symbol] = _mixed([(r.prob, _joined(n, [edges[child] for child in r.children])) for r in rules])
        whole = edges[self.start]
        if padding:
            marks = [[_word_edges(n, len(self.terminals) + end)] * padding for end in (0, 1)]
            whole = _joined(n, [*marks[0], whole, *marks[1]])
        counts = np.zeros((size,) * n)
        for gram, count in whole.inside.items():
            counts[gram] = count
        return counts


@dataclass(frozen=True)
class _Edges:
    """What n-grams need to know of a random string: expected n-grams inside, its first and last n − 1 tokens.

    short   P(string) of strings with fewer than n − 1 tokens; the long ones are in `first` and `last`
    """

    inside: dict[tuple[int, ...], float]
    short: dict[tuple[int, ...], float]
    first: dict[tuple[int, ...], float]
    last: dict[tuple[int, ...], float]


def _word_edges(n: int, word: int) -> _Edges:
    gram: tuple[int, ...] = (word,)
    inside: dict[tuple[int, ...], float] = {gram: 1.0} if n == 1 else {}
    if n == 1:
        return _Edges(inside, {}, {(): 1.0}, {(): 1.0})
    return _Edges(inside, {}, {gram: 1.0}, {gram: 1.0}) if n == 2 else _Edges(inside, {gram: 1.0}, {}, {})


def _joined(n: int, parts: list[_Edges]) -> _Edges:
    """Independent strings one after another."""
    whole = parts[0]
    for part in parts[1:]:
        whole = _pair(n, whole, part)
    return whole


def _pair(n: int, left: _Edges, right: _Edges) -> _Edges:
    inside: dict[tuple[int, ...], float] = defaultdict(float, left.inside)
    for gram, count in right.inside.items():
        inside[gram] += count
    short: dict[tuple[int, ...], float] = defaultdict(float)
    first: dict[tuple[int, ...], float] = defaultdict(float, left.first)
    last: dict[tuple[int, ...], float] = defaultdict(float, right.last)
    ends, starts = {**left.last, **left.short}, {**right.first, **right.short}
    for end, p in ends.items():
        for start, q in starts.items():
            joint, share = end + start, p * q
            for place in range(max(0, len(joint) - n + 1)):
                # A window inside one part was counted there; short parts have none.
                if place < len(end) < place + n:
                    inside[joint[place : place + n]] += share
            if end in left.short and start in right.short and len(joint) < n - 1:
                short[joint] += share
            elif end in left.short:
                first[joint[: n - 1]] += share
            if start in right.short and not (end in left.short and len(joint) < n - 1):
                last[joint[len(joint) - n + 1 :]] += share
    return _Edges(dict(inside), dict(short), dict(first), dict(last))


def _mixed(parts: list[tuple[float, _Edges]]) -> _Edges:
    """One of several random strings."""
    tables: list[dict[tuple[int, ...], float]] = []
    for name in ("inside", "short", "first", "last"):
        total: dict[tuple[int, ...], float] = defaultdict(float)
        for weight, part in parts:
            for gram, count in getattr(part, name).items():
                total[gram] += weight * count
        tables.append(dict(total))
    return _Edges(*tables)


def _convolved(laws: list[Float[np.ndarray, "_length"]]) -> Float[np.ndarray, "length"]:
    whole = laws[0]
    for law in laws[1:]:
        whole = np.convolve(whole, law)
    return whole


def _alternatives(parent: str, sides: list[str]) -> list[Production]:
    """The rules of one symbol; either all of them say their probability or none does."""
    given = [_SHARE.search(side) for side in sides]
    words = [tuple(_SHARE.sub("", side).split()) for side in sides]
    if not any(given):
        return [Production(parent, children, 1 / len(sides)) for children in words]
    try:
        return [Production(parent, children, float(share[1])) for children, share in zip(words, given) if share]
    except ValueError:
        raise BadInput(f"a probability is a number in brackets, got {sides}") from None


def _reachable(rules: Iterable[Production], start: str) -> tuple[Production, ...]:
    """The rules that a derivation from `start` may use, in their order."""
    listed = list(rules)
    reached, before = {start}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {child for rule in listed if rule.parent in reached for child in rule.children}
    return tuple(rule for rule in listed if rule.parent in reached)


def _at(symbol: str, left: int, rules: Mapping[str, object]) -> str:
    return f"{symbol}@{left}" if symbol in rules else symbol
