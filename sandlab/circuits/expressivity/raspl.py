"""RASP-L: programs that think like a causal transformer, with a text syntax, an interpreter and a check of legality.

    before = aggr(select(indices, indices - 1, "=="), tokens, "max")      # the token before
    answer = where(before == tokens, 1, 0)

A line names an expression, the last one is the answer at each position. Lines `def name(a, b):` define abbreviations.

tokens, indices      the word, and 0, 1, 2, …
select(k, q, op)     which positions j ≤ i have k[j] op q[i], op one of "==", "!=", "<", "<=", ">", ">="; joined with
                     `and`
aggr(s, v, how)      "max", "min" or "mean" of v over the selected positions, 0 when there are none
kqv(k, q, v, op, how) = aggr(select(k, q, op), v, how)
sel_width(s)         how many positions are selected
where(c, x, y), and +, −, *, //, %, comparisons, `and`, `or`, `not`: position by position

What makes it RASP-L rather than RASP (Zhou et al. 2023): everything is causal, and indices may only be compared,
copied and moved by one; `check` refuses all other arithmetic on them, and tables (*, //, %) of numbers without a
bound, such as counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from sandlab.circuits.expressivity._raspl_nodes import (
    COMPARISONS,
    OPERATORS,
    Map,
    Node,
    Number,
    Select,
    Sequence_,
    Source,
    Width,
    apply,
    walk,
)
from sandlab.circuits.expressivity._raspl_text import Reader

__all__ = ["RaspL"]


@dataclass(frozen=True)
class RaspL:
    """A RASP-L program: `run` it on words, `check` whether it is legal, count its operations.

    text   the program; name: what it is called in tables
    """

    text: str
    name: str = ""
    answer: Sequence_ = field(init=False, default=Number(0), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "answer", Reader().program(self.text))

    @cached_property
    def nodes(self) -> list[Node]:
        """Every operation, each once, inner ones first; abbreviations are written out."""
        return list(dict.fromkeys(walk(self.answer)))

    @property
    def operations(self) -> int:
        """Length of the program: its distinct operations, sources and constants left out."""
        return sum(not isinstance(node, (Source, Number)) for node in self.nodes)

    def run(self, tokens: Int[np.ndarray, "n time"]) -> Float[np.ndarray, "n time"] | Int[np.ndarray, "n time"]:
        """The answer at every position."""
        return _Run(np.asarray(tokens)).value(self.answer)

    def check(self) -> list[str]:
        """What RASP-L does not allow, a sentence each; an empty list for a legal program."""
        checker = _Checker()
        checker.kind(self.answer)
        return checker.problems

    @property
    def legal(self) -> bool:
        return not self.check()


class _Run:
    """Values of a program on some words, each computed once."""

    def __init__(self, tokens: np.ndarray) -> None:
        self.tokens = tokens.astype(np.int64)
        time = tokens.shape[-1]
        self.causal = np.tril(np.ones((time, time), dtype=bool))
        self.known: dict[Sequence_, np.ndarray] = {}

    def value(self, node: Sequence_) -> np.ndarray:
        if node not in self.known:
            self.known[node] = self._value(node)
        return self.known[node]

    def _value(self, node: Sequence_) -> np.ndarray:
        if isinstance(node, Source):
            positions = np.broadcast_to(np.arange(self.tokens.shape[-1]), self.tokens.shape)
            return self.tokens if node.name == "tokens" else positions
        if isinstance(node, Number):
            return np.full(self.tokens.shape, node.value)
        if isinstance(node, Map):
            return apply(node.operator, [self.value(part) for part in node.parts])
        if isinstance(node, Width):
            return self.selected(node.selector).sum(-1)
        return _reduce(self.selected(node.selector), self.value(node.value), node.reduction)

    def selected(self, selector: Select) -> np.ndarray:
        """(word, query, key)"""
        chosen = np.broadcast_to(self.causal, (len(self.tokens), *self.causal.shape))
        for key, query, operator in selector.conditions:
            chosen = chosen & OPERATORS[operator](self.value(key)[:, None, :], self.value(query)[:, :, None])
        return chosen


def _reduce(chosen: np.ndarray, value: np.ndarray, how: str) -> np.ndarray:
    some, row = chosen.any(-1), value[:, None, :]
    if how == "mean":
        return np.where(some, (chosen * row).sum(-1) / np.maximum(chosen.sum(-1), 1), 0)
    far = np.iinfo(np.int64).max // 2
    best = np.where(chosen, row, -far).max(-1) if how == "max" else np.where(chosen, row, far).min(-1)
    return np.where(some, best, 0)


class _Checker:
    """Kinds of values: "index", "bounded" (tokens, truth values, constants) and "count" (no bound is known)."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.known: dict[Sequence_, str] = {}

    def kind(self, node: Sequence_) -> str:
        if node not in self.known:
            self.known[node] = self._kind(node)
        return self.known[node]

    def _kind(self, node: Sequence_) -> str:
        if isinstance(node, Source):
            return "index" if node.name == "indices" else "bounded"
        if isinstance(node, Number):
            return "bounded"
        if isinstance(node, Map):
            return self._map(node)
        self._selector(node.selector)
        if isinstance(node, Width):
            return "count"
        kind = self.kind(node.value)
        if kind == "index" and node.reduction == "mean":
            self.problems.append("a mean of indices is arithmetic on indices")
        return "count" if node.reduction == "mean" else kind

    def _selector(self, selector: Select) -> None:
        for key, query, _ in selector.conditions:
            self.kind(key), self.kind(query)

    def _map(self, node: Map) -> str:
        kinds = [self.kind(part) for part in node.parts]
        if node.operator in (*COMPARISONS, "and", "or", "not"):
            return "bounded"
        if node.operator == "where":
            kinds = kinds[1:]
            return "index" if "index" in kinds else "count" if "count" in kinds else "bounded"
        if "index" in kinds:
            one = node.operator in "+-" and isinstance(node.parts[1], Number) and abs(node.parts[1].value) <= 1
            if not one:
                self.problems.append(f"{node.operator} on indices: they may only be compared, copied and moved by one")
            return "index"
        if "count" in kinds and node.operator in ("*", "//", "%"):
            self.problems.append(f"{node.operator} on a count: its table has no bound")
        return "count" if "count" in kinds else "bounded"
