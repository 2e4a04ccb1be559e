"""The exact verifier of a context-free language: Earley's prefix check."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from sandlab.decoding.verifiers.base import Verifier
from sandlab.errors import BadInput, shown

__all__ = ["ContextFreeGrammar", "EarleyVerifier"]

MOST_CHARACTERS, MOST_RULES, MOST_SYMBOLS = 100_000, 1000, 5000
Item = tuple[int, int, int]  # rule, place of the dot, set in which it began


@dataclass(frozen=True, eq=False)
class ContextFreeGrammar:
    """Rules A → X₁ … X_m over terminals and non-terminals (the symbols with rules).

    >>> ContextFreeGrammar.parse("S = ( S ) S | [ S ] S |")

    Rules with a symbol that derives no string are dropped at once: after that every prefix that Earley's algorithm
    can read is the prefix of a word.
    """

    rules: tuple[tuple[str, tuple[str, ...]], ...]
    start: str

    @classmethod
    def parse(cls, text: str) -> ContextFreeGrammar:
        """One non-terminal a line: `A = x B y | z |`, blanks between symbols; an empty choice is the empty word."""
        if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
            raise BadInput(f"a grammar is a text of at most {MOST_CHARACTERS} characters, got {shown(text)[:80]}")
        rules = []
        for line in filter(None, map(str.strip, text.splitlines())):
            left, equals, right = line.partition("=")
            if not equals or not left.strip() or " " in left.strip():
                raise BadInput(f"cannot read the rule {line!r}: write `A = x B | y`")
            rules += [(left.strip(), tuple(choice.split())) for choice in right.split("|")]
        if not rules:
            raise BadInput("the grammar has no rules: write `A = x B | y`, one non-terminal a line")
        return cls(tuple(rules), rules[0][0])

    def __post_init__(self) -> None:
        symbols = sum(1 + len(right) for _, right in self.rules)
        if len(self.rules) > MOST_RULES or symbols > MOST_SYMBOLS:
            raise BadInput(
                f"a grammar has at most {MOST_RULES} rules and {MOST_SYMBOLS} symbols, got {len(self.rules)}, {symbols}"
            )
        if not math.isfinite(self.shortest[self.start]):
            raise BadInput(f"the grammar derives no string from {self.start!r}: some rule must lead to terminals only")
        kept = tuple(rule for rule in self.rules if all(math.isfinite(self.shortest[symbol]) for symbol in rule[1]))
        object.__setattr__(self, "rules", kept)

    @cached_property
    def by_left(self) -> Mapping[str, list[int]]:
        table: dict[str, list[int]] = {}
        for number, (left, _) in enumerate(self.rules):
            table.setdefault(left, []).append(number)
        return table

    @cached_property
    def terminals(self) -> list[str]:
        """Symbols without rules, in the order of appearance."""
        lefts = {left for left, _ in self.rules}
        return list(dict.fromkeys(symbol for _, right in self.rules for symbol in right if symbol not in lefts))

    @cached_property
    def shortest(self) -> dict[str, float]:
        """Length of the shortest string each symbol derives; infinite if it derives none."""
        lefts = {left for left, _ in self.rules}
        length = {symbol: math.inf if symbol in lefts else 1.0 for _, right in self.rules for symbol in right}
        length.update(dict.fromkeys(lefts, math.inf))
        changed = True
        while changed:
            changed = False
            for left, right in self.rules:
                total = sum(length[symbol] for symbol in right)
                if total < length[left]:
                    length[left], changed = total, True
        return length


@dataclass(eq=False)
class ItemSet:
    """The items after one more token, and for each non-terminal begun here how much must follow its completion."""

    items: list[Item]
    waiting: dict[str, list[Item]] = field(default_factory=dict)
    debt: dict[str, float] = field(default_factory=dict)


class Chart:
    """Earley's sets after a prefix; adding a token shares all earlier sets."""

    def __init__(self, grammar: ContextFreeGrammar, sets: tuple[ItemSet, ...] = ()) -> None:
        self.grammar = grammar
        if not sets:
            first = ((number, 0, 0) for number in grammar.by_left[grammar.start])
            sets = (self._close(first, ()),)
        self.sets = sets

    def read(self, terminal: str) -> Chart | None:
        """The chart after one more terminal, or None if no word continues so."""
        rules = self.grammar.rules
        moved = [(rule, dot + 1, origin) for rule, dot, origin in self.sets[-1].waiting.get(terminal, [])]
        if not moved:
            return None
        assert all(rules[rule][1][dot - 1] == terminal for rule, dot, _ in moved)
        return Chart(self.grammar, (*self.sets, self._close(moved, self.sets)))

    @property
    def complete(self) -> bool:
        """Whether what was read is a word."""
        rules, start = self.grammar.rules, self.grammar.start
        return any(
            origin == 0 and rules[rule][0] == start and dot == len(rules[rule][1])
            for rule, dot, origin in self.sets[-1].items
        )

    @property
    def missing(self) -> float:
        """Tokens of the shortest completion: least over the items of what is left of the rule and of those above it."""
        return min(self._rest(rule, dot) + self._debt(rule, origin) for rule, dot, origin in self.sets[-1].items)

    def _close(self, seeds: Iterable[Item], before: tuple[ItemSet, ...]) -> ItemSet:
        """Predict and complete until nothing new appears."""
        rules, here = self.grammar.rules, len(before)
        made = ItemSet([])
        seen: set[Item] = set()
        agenda = list(seeds)
        finished: set[str] = set()  # non-terminals that derive the empty word here
        while agenda:
            item = agenda.pop()
            if item in seen:
                continue
            seen.add(item)
            made.items.append(item)
            rule, dot, origin = item
            left, right = rules[rule]
            if dot < len(right):
                symbol = right[dot]
                made.waiting.setdefault(symbol, []).append(item)
                agenda += [(number, 0, here) for number in self.grammar.by_left.get(symbol, [])]
                if symbol in finished:
                    agenda.append((rule, dot + 1, origin))
                continue
            if origin == here:
                finished.add(left)
            parents = (made if origin == here else before[origin]).waiting.get(left, [])
            agenda += [(parent, place + 1, start) for parent, place, start in parents]
        self._owe(made, before)
        return made

    def _owe(self, made: ItemSet, before: tuple[ItemSet, ...]) -> None:
        """For each non-terminal predicted here: the fewest tokens after its completion (shortest path over items)."""
        here = len(before)
        made.debt = dict.fromkeys((symbol for symbol in made.waiting if symbol in self.grammar.by_left), math.inf)
        if here == 0:
            made.debt[self.grammar.start] = 0.0
        changed = True
        while changed:
            changed = False
            for symbol in list(made.debt):
                for rule, dot, origin in made.waiting.get(symbol, []):
                    source = made if origin == here else before[origin]
                    total = self._rest(rule, dot + 1) + source.debt.get(self.grammar.rules[rule][0], math.inf)
                    if total < made.debt[symbol]:
                        made.debt[symbol], changed = total, True

    def _rest(self, rule: int, dot: int) -> float:
        return sum(self.grammar.shortest[symbol] for symbol in self.grammar.rules[rule][1][dot:])

    def _debt(self, rule: int, origin: int) -> float:
        return self.sets[origin].debt.get(self.grammar.rules[rule][0], math.inf)


class EarleyVerifier(Verifier):
    """V(s) = 1 if s is the prefix of a word of a context-free language (of at most `length` tokens, if given).

    vocabulary  the terminal each token stands for; a token that is none of them is never accepted
    eos, skip   a token that ends a word; so many tokens at the beginning are not read (a start token)
    Charts of prefixes are kept: a string that grows or shrinks by a token costs one set (Earley 1970). Their number is
    bounded by the size of the batch; beyond it they are forgotten and read again.
    """

    def __init__(
        self,
        grammar: ContextFreeGrammar,
        vocabulary: Sequence[str],
        *,
        length: int | None = None,
        eos: int | None = None,
        skip: int = 0,
    ) -> None:
        missing = [terminal for terminal in grammar.terminals if terminal not in vocabulary]
        if missing:
            raise BadInput(f"the grammar has the terminal {missing[0]!r}, the vocabulary has not: {list(vocabulary)}")
        self.grammar, self.vocabulary = grammar, list(vocabulary)
        self.length, self.eos, self.skip = length, eos, skip
        self.charts: dict[tuple[int, ...], Chart | None] = {(): Chart(grammar)}
        self.most = 100_000

    def start(self, strings: int, capacity: int) -> None:
        self.charts = {(): self.charts[()]}
        # Room for every prefix of every string and all of its one-token extensions.
        self.most = max(1000, strings * capacity * (len(self.vocabulary) + 1))

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self._each(tokens, lengths, self._alive)

    def outcome(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self._each(tokens, lengths, self._word)

    def _each(self, tokens: Tensor, lengths: Tensor, question) -> Tensor:  # type: ignore[no-untyped-def]
        prefixes = [tuple(row[self.skip : cut]) for row, cut in zip(tokens.tolist(), lengths.tolist())]
        answers = {prefix: float(question(prefix)) for prefix in set(prefixes)}
        return torch.tensor([answers[prefix] for prefix in prefixes], dtype=torch.float64, device=tokens.device)

    def _alive(self, prefix: tuple[int, ...]) -> bool:
        if self.eos is not None and prefix and prefix[-1] == self.eos:
            return self._word(prefix)
        chart = self._chart(prefix)
        return chart is not None and (self.length is None or len(prefix) + chart.missing <= self.length)

    def _word(self, prefix: tuple[int, ...]) -> bool:
        if self.eos is not None:
            if not prefix or prefix[-1] != self.eos:
                return False
            prefix = prefix[:-1]
        chart = self._chart(prefix)
        return chart is not None and chart.complete and (self.length is None or len(prefix) <= self.length)

    def _chart(self, prefix: tuple[int, ...]) -> Chart | None:
        if len(self.charts) > self.most:
            self.charts = {(): self.charts[()]}
        known = len(prefix)
        while prefix[:known] not in self.charts:
            known -= 1
        chart = self.charts[prefix[:known]]
        for place in range(known, len(prefix)):
            token = prefix[place]
            readable = chart is not None and 0 <= token < len(self.vocabulary)
            chart = chart.read(self.vocabulary[token]) if readable and chart is not None else None
            self.charts[prefix[: place + 1]] = chart
        return chart
