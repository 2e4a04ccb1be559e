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

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Int

from sandlab.errors import BadInput, integer, require

__all__ = ["CRasp", "all_words", "first_difference"]


@dataclass(frozen=True)
class Letter:
    """Q_a(i): the letter here is a."""

    symbol: str


@dataclass(frozen=True)
class Truth:
    value: bool


@dataclass(frozen=True)
class Not:
    inner: Formula


@dataclass(frozen=True)
class And:
    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Count:
    """#[j ≤ i] P(j)"""

    inner: Formula


@dataclass(frozen=True)
class Choice:
    """`yes` where the condition holds, else `no`."""

    condition: Formula
    yes: Linear
    no: Linear


@dataclass(frozen=True)
class Linear:
    """Σ coefficient · term + constant."""

    terms: tuple[tuple[Count | Choice, int], ...] = ()
    constant: int = 0

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        merged = dict(self.terms)
        for term, weight in other.terms:
            merged[term] = merged.get(term, 0) + factor * weight
        kept = tuple((term, weight) for term, weight in merged.items() if weight)
        return Linear(kept, self.constant + factor * other.constant)


@dataclass(frozen=True)
class AtLeastZero:
    """The number is not negative; every comparison of whole numbers becomes one of these or two."""

    number: Linear


Formula: TypeAlias = "Letter | Truth | Not | And | AtLeastZero"
Node: TypeAlias = "Formula | Count | Choice | Linear"


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
        letters, accept = _parse(self.text)
        object.__setattr__(self, "letters", letters)
        object.__setattr__(self, "accept", accept)

    @cached_property
    def nodes(self) -> list[Node]:
        """Every operation of the program, each once, inner ones first."""
        return list(dict.fromkeys(_walk(self.accept)))

    @property
    def operations(self) -> int:
        """Length of the program: its distinct operations, letters and constants left out."""
        return sum(not isinstance(node, (Letter, Truth)) for node in self.nodes)

    @property
    def depth(self) -> int:
        """How deeply counts are nested."""
        return _depth(self.accept)

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


# ---------------------------------------------------------------------- parsing


def _parse(text: str) -> tuple[str, Formula]:
    try:
        lines = ast.parse(text).body
    except SyntaxError as problem:
        raise BadInput(f"line {problem.lineno} of the program cannot be read: {problem.msg}") from None
    if not lines:
        raise BadInput('an empty program: begin with letters = "…" and end with accept = …')
    names: dict[str, Formula | Linear] = {}
    letters = ""
    for line in lines:
        name, value = _assignment(line)
        if name == "letters":
            letters = _letters(value)
            continue
        if not letters:
            raise BadInput('a program begins with its alphabet: letters = "01"')
        names[name] = _Reader(letters, names).read(value)
    if not names:
        raise BadInput("a program ends with its answer: accept = …")
    last = list(names.values())[-1]
    if isinstance(last, Linear):
        raise BadInput(f"the last line {list(names)[-1]!r} is a number: the answer of a program is true or false")
    return letters, last


def _assignment(line: ast.stmt) -> tuple[str, ast.expr]:
    if isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name):
        return line.targets[0].id, line.value
    raise BadInput(f"line {line.lineno} is not of the form name = expression")


def _letters(value: ast.expr) -> str:
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
        require(len(set(value.value)) == len(value.value), "letters", value.value, "different letters")
        return value.value
    raise BadInput('letters must be a text of different letters, such as "ab"')


_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Linear, Linear], Formula]] = {
    ast.GtE: lambda a, b: AtLeastZero(a.plus(b, -1)),
    ast.LtE: lambda a, b: AtLeastZero(b.plus(a, -1)),
    ast.Gt: lambda a, b: AtLeastZero(a.plus(b, -1).plus(Linear(constant=-1))),
    ast.Lt: lambda a, b: AtLeastZero(b.plus(a, -1).plus(Linear(constant=-1))),
    ast.Eq: lambda a, b: And((AtLeastZero(a.plus(b, -1)), AtLeastZero(b.plus(a, -1)))),
    ast.NotEq: lambda a, b: Not(And((AtLeastZero(a.plus(b, -1)), AtLeastZero(b.plus(a, -1))))),
}


class _Reader:
    """Expressions of Python's grammar as formulas and numbers; nothing is evaluated."""

    def __init__(self, letters: str, names: Mapping[str, Formula | Linear]) -> None:
        self.letters, self.names = letters, names

    def read(self, node: ast.expr) -> Formula | Linear:
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                raise BadInput(f"line {node.lineno}: {node.id!r} has not been defined")
            return self.names[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return Truth(node.value)
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return Linear(constant=node.value)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BoolOp):
            parts = tuple(self.formula(part) for part in node.values)
            return And(parts) if isinstance(node.op, ast.And) else Not(And(tuple(map(_negated, parts))))
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.IfExp):
            yes, no = self.number(node.body), self.number(node.orelse)
            return Linear(((Choice(self.formula(node.test), yes, no), 1),))
        raise BadInput(f"line {node.lineno}: {ast.unparse(node)!r} is not part of C-RASP")

    def formula(self, node: ast.expr) -> Formula:
        found = self.read(node)
        if isinstance(found, Linear):
            raise BadInput(f"line {node.lineno}: {ast.unparse(node)!r} is a number where true or false is needed")
        return found

    def number(self, node: ast.expr) -> Linear:
        found = self.read(node)
        if not isinstance(found, Linear):
            raise BadInput(f"line {node.lineno}: {ast.unparse(node)!r} is true or false where a number is needed")
        return found

    def _call(self, node: ast.Call) -> Formula | Linear:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if len(node.args) != 1 or node.keywords or name not in ("Q", "count"):
            raise BadInput(f'line {node.lineno}: {ast.unparse(node)!r}: there are Q("letter") and count(formula)')
        if name == "count":
            return Linear(((Count(self.formula(node.args[0])), 1),))
        symbol = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
        if not isinstance(symbol, str) or symbol not in self.letters or len(symbol) != 1:
            raise BadInput(f"line {node.lineno}: Q takes one of the letters {self.letters!r}, got {symbol!r}")
        return Letter(symbol)

    def _unary(self, node: ast.UnaryOp) -> Formula | Linear:
        if isinstance(node.op, ast.Not):
            return _negated(self.formula(node.operand))
        if isinstance(node.op, ast.USub):
            return Linear().plus(self.number(node.operand), -1)
        raise BadInput(f"line {node.lineno}: {ast.unparse(node)!r} is not part of C-RASP")

    def _arithmetic(self, node: ast.BinOp) -> Linear:
        left, right = self.number(node.left), self.number(node.right)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return left.plus(right, 1 if isinstance(node.op, ast.Add) else -1)
        if isinstance(node.op, ast.Mult) and not (left.terms and right.terms):
            factor, other = (left, right) if not left.terms else (right, left)
            return Linear().plus(other, factor.constant)
        raise BadInput(f"line {node.lineno}: {ast.unparse(node)!r}: numbers are added, subtracted, or taken k times")

    def _comparison(self, node: ast.Compare) -> Formula:
        ends = [self.number(each) for each in (node.left, *node.comparators)]
        kinds = [_COMPARISONS.get(type(op)) for op in node.ops]
        if None in kinds:
            raise BadInput(f"line {node.lineno}: {ast.unparse(node)!r} is not a comparison of numbers")
        parts = tuple(make(a, b) for make, a, b in zip(kinds, ends, ends[1:]) if make is not None)
        return parts[0] if len(parts) == 1 else And(parts)


def _negated(formula: Formula) -> Formula:
    return formula.inner if isinstance(formula, Not) else Not(formula)


# ---------------------------------------------------------------------- structure


def inner_nodes(node: Node) -> tuple[Node, ...]:
    """What an operation is made of."""
    if isinstance(node, (Not, Count)):
        return (node.inner,)
    if isinstance(node, And):
        return node.parts
    if isinstance(node, AtLeastZero):
        return (node.number,)
    if isinstance(node, Choice):
        return (node.condition, node.yes, node.no)
    return tuple(term for term, _ in node.terms) if isinstance(node, Linear) else ()


def _walk(node: Node) -> Iterator[Node]:
    for inner in inner_nodes(node):
        yield from _walk(inner)
    yield node


def _depth(node: Node) -> int:
    inside = max((_depth(inner) for inner in inner_nodes(node)), default=0)
    return inside + isinstance(node, Count)
