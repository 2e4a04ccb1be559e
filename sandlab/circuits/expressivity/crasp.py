"""C-RASP: programs that count, with a text syntax, an interpreter, and a check against a language.

    letters = "()"
    opened = count(Q("("))                    # #[j ≤ i] Q_((j)
    closed = count(Q(")"))
    broken = count(opened < closed)
    accept = broken == 0 and opened == closed

A line names an expression; the last one is the answer at each position i. Boolean expressions: letters Q("a"), True,
False, not, and, or, comparisons of numbers. Numbers: whole constants, count(P) = #[j ≤ i] P(j), sums, differences,
whole multiples, and `x if P else y`. There is nothing else: no positions, no look-back, no arithmetic beyond this.

Source: Yang and Chiang 2024, "Counting like transformers".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from sandlab.circuits.expressivity._crasp_nodes import (
    And,
    Choice,
    Count,
    Formula,
    Letter,
    Linear,
    Node,
    Not,
    Truth,
    depth_of,
    walk,
)
from sandlab.circuits.expressivity._crasp_text import parse
from sandlab.errors import integer, require

__all__ = ["CRasp", "all_words", "first_difference"]


@dataclass(frozen=True)
class CRasp:
    """A C-RASP program: `run` it on words, count its operations, compile it with `compile_crasp`.

    text   the program; name: what it is called in tables
    """

    text: str
    name: str = ""
    letters: str = field(init=False, default="")
    accept: Formula = field(init=False, default=Truth(True), repr=False)

    def __post_init__(self) -> None:
        letters, accept = parse(self.text)
        object.__setattr__(self, "letters", letters)
        object.__setattr__(self, "accept", accept)

    @cached_property
    def nodes(self) -> list[Node]:
        """Every operation of the program, each once, inner ones first."""
        return list(dict.fromkeys(walk(self.accept)))

    @property
    def operations(self) -> int:
        """Length of the program: its distinct operations, letters and constants left out."""
        return sum(not isinstance(node, (Letter, Truth)) for node in self.nodes)

    @property
    def depth(self) -> int:
        """How deeply counts are nested."""
        return depth_of(self.accept)

    def run(self, tokens: Int[np.ndarray, "word time"]) -> Bool[np.ndarray, "word time"]:
        """The answer at every position: whether the word up to there is accepted. Tokens are indices of letters."""
        tokens = np.asarray(tokens)
        inside = tokens.size == 0 or (tokens.min() >= 0 and tokens.max() < len(self.letters))
        require(bool(inside), "tokens", "a letter", f"0 to {len(self.letters) - 1}, one of {self.letters!r}")
        return _Run(self.letters, tokens).formula(self.accept)

    def accepts(self, word: str) -> bool:
        """Whether a word (of at least one letter) is accepted."""
        require(len(word) >= 1, "word", word, "of at least one letter", "answers are given at positions")
        for letter in word:
            require(letter in self.letters, "letter", letter, f"one of {self.letters!r}")
        return bool(self.run(np.array([[self.letters.index(letter) for letter in word]]))[0, -1])

    def at_empty(self) -> Callable[[Formula], bool]:
        """The value of a formula before the first letter: no letter is here and every count is zero."""
        return _Run(self.letters, np.full((1, 1), -1), empty=True).single


class _Run:
    """Values of formulas and numbers on some words, each computed once."""

    def __init__(self, letters: str, tokens: np.ndarray, *, empty: bool = False) -> None:
        self.letters, self.tokens, self.empty = letters, tokens, empty
        self.known: dict[Node, np.ndarray] = {}

    def single(self, node: Formula) -> bool:
        return bool(self.formula(node).ravel()[0])

    def formula(self, node: Formula) -> np.ndarray:
        if node not in self.known:
            self.known[node] = self._formula(node)
        return self.known[node]

    def _formula(self, node: Formula) -> np.ndarray:
        if isinstance(node, Letter):
            return self.tokens == self.letters.index(node.symbol)
        if isinstance(node, Truth):
            return np.full(self.tokens.shape, node.value)
        if isinstance(node, Not):
            return ~self.formula(node.inner)
        if isinstance(node, And):
            return np.logical_and.reduce([self.formula(part) for part in node.parts])
        return self.linear(node.number) >= 0

    def linear(self, number: Linear) -> np.ndarray:
        total = np.full(self.tokens.shape, number.constant)
        for term, weight in number.terms:
            total = total + weight * self._term(term)
        return total

    def _term(self, term: Count | Choice) -> np.ndarray:
        if term not in self.known:
            if isinstance(term, Choice):
                yes, no = self.linear(term.yes), self.linear(term.no)
                self.known[term] = np.where(self.formula(term.condition), yes, no)
            else:
                held = self.formula(term.inner).astype(np.int64)
                self.known[term] = 0 * held if self.empty else np.cumsum(held, -1)
        return self.known[term]


def all_words(letters: int, length: int) -> Int[np.ndarray, "word time"]:
    """Every word of that length; their prefixes are all shorter words."""
    integer("length", length, low=1)
    return np.array(list(itertools.product(range(letters), repeat=length)), dtype=np.int64)


def first_difference(program: CRasp, language: Callable[[str], bool], longest: int) -> str | None:
    """The first word of at most `longest` letters on which the program and the language differ, or None."""
    for length in range(1, longest + 1):
        words = all_words(len(program.letters), length)
        for row, accepted in zip(words, program.run(words)[:, -1]):
            word = "".join(program.letters[token] for token in row)
            if bool(accepted) != language(word):
                return word
    return None
