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

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from sandlab.errors import BadInput

__all__ = ["RaspL"]

OPERATORS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "%": np.mod,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
REDUCTIONS = ("max", "min", "mean")


@dataclass(frozen=True)
class Source:
    """tokens or indices"""

    name: str


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Map:
    """An operator, position by position; "where" and "not" besides those of two arguments."""

    operator: str
    parts: tuple[Sequence_, ...]


@dataclass(frozen=True)
class Select:
    """All of the comparisons (k, q, op) hold between the key's and the query's position, and the key is not later."""

    conditions: tuple[tuple[Sequence_, Sequence_, str], ...]


@dataclass(frozen=True)
class Aggregate:
    selector: Select
    value: Sequence_
    reduction: str


@dataclass(frozen=True)
class Width:
    selector: Select


Sequence_: TypeAlias = "Source | Number | Map | Aggregate | Width"
Node: TypeAlias = "Sequence_ | Select"


@dataclass(frozen=True)
class RaspL:
    """A RASP-L program: `run` it on words, `check` whether it is legal, count its operations.

    text   the program; name: what it is called in tables
    """

    text: str
    name: str = ""
    answer: Sequence_ = field(init=False, default=Number(0), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "answer", _Reader().program(self.text))

    @cached_property
    def nodes(self) -> list[Node]:
        """Every operation, each once, inner ones first; abbreviations are written out."""
        return list(dict.fromkeys(_walk(self.answer)))

    @property
    def operations(self) -> int:
        """Length of the program: its distinct operations, sources and constants left out."""
        return sum(not isinstance(node, (Source, Number)) for node in self.nodes)

    def run(self, tokens: Int[np.ndarray, "word time"]) -> Float[np.ndarray, "word time"]:
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


def apply(operator: str, values: list[np.ndarray]) -> np.ndarray:
    """An operator on arrays of numbers; truth values are 0 and 1."""
    if operator == "where":
        return np.where(values[0] != 0, values[1], values[2])
    if operator == "not":
        return (values[0] == 0).astype(np.int64)
    if operator in ("//", "%"):
        # Division by zero is zero, as for an empty selection: a program may divide where its result is not used.
        safe = np.where(values[1] == 0, 1, values[1])
        return np.where(values[1] == 0, 0, OPERATORS[operator](values[0], safe))
    result = OPERATORS[operator](values[0], values[1])
    return result.astype(np.int64) if result.dtype == bool else result


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


# ---------------------------------------------------------------------- parsing

_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"
}  # fmt: skip
_COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="
}  # fmt: skip


class _Reader:
    """Statements of Python's grammar as operations; nothing is evaluated."""

    def __init__(self) -> None:
        self.functions: dict[str, ast.FunctionDef] = {}

    def program(self, text: str) -> Sequence_:
        try:
            lines = ast.parse(text).body
        except SyntaxError as problem:
            raise BadInput(f"line {problem.lineno} of the program cannot be read: {problem.msg}") from None
        found = self._block(lines, {"tokens": Source("tokens"), "indices": Source("indices")})
        if found is None:
            raise BadInput("an empty program: its last line is the answer")
        return _sequence(found, "the last line")

    def _block(self, lines: list[ast.stmt], names: dict[str, Node]) -> Node | None:
        last: Node | None = None
        for line in lines:
            if isinstance(line, ast.FunctionDef):
                self.functions[line.name] = line
            elif isinstance(line, ast.Return) and line.value is not None:
                return self.read(line.value, names)
            elif isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name) and len(line.targets) == 1:
                last = names[line.targets[0].id] = self.read(line.value, names)
            else:
                raise BadInput(f"line {line.lineno} is not of the form name = expression")
        return last

    def read(self, node: ast.expr, names: Mapping[str, Node]) -> Node:
        if isinstance(node, ast.Name):
            if node.id not in names:
                raise BadInput(f"line {node.lineno}: {node.id!r} has not been defined")
            return names[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return Number(int(node.value))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Map("not", (self._value(node.operand, names),))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._value(node.operand, names)
            return Number(-inner.value) if isinstance(inner, Number) else Map("-", (Number(0), inner))
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return Map(_BINARY[type(node.op)], (self._value(node.left, names), self._value(node.right, names)))
        if isinstance(node, ast.Compare):
            return self._compare(node, names)
        if isinstance(node, ast.BoolOp):
            return _joined(node, [self.read(part, names) for part in node.values])
        if isinstance(node, ast.Call):
            return self._call(node, names)
        raise BadInput(f"line {node.lineno}: {ast.unparse(node)!r} is not part of RASP-L")

    def _value(self, node: ast.expr, names: Mapping[str, Node]) -> Sequence_:
        return _sequence(self.read(node, names), f"line {node.lineno}: {ast.unparse(node)!r}")

    def _compare(self, node: ast.Compare, names: Mapping[str, Node]) -> Sequence_:
        ends = [self._value(each, names) for each in (node.left, *node.comparators)]
        if any(type(op) not in _COMPARE for op in node.ops):
            raise BadInput(f"line {node.lineno}: {ast.unparse(node)!r} is not a comparison of numbers")
        parts: list[Sequence_] = [Map(_COMPARE[type(op)], (a, b)) for op, a, b in zip(node.ops, ends, ends[1:])]
        result = parts[0]
        for part in parts[1:]:
            result = Map("and", (result, part))
        return result

    def _call(self, node: ast.Call, names: Mapping[str, Node]) -> Node:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in self.functions:
            return self._inline(node, self.functions[name], names)
        words = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        values = [self.read(each, names) for each in node.args[: len(node.args) - len(words)]]
        made = _core(name, values, words)
        if made is None or node.keywords:
            raise BadInput(f"line {node.lineno}: {ast.unparse(node)!r} is not part of RASP-L")
        return made

    def _inline(self, node: ast.Call, function: ast.FunctionDef, names: Mapping[str, Node]) -> Node:
        parameters = [each.arg for each in function.args.args]
        if len(parameters) != len(node.args) or node.keywords:
            raise BadInput(f"line {node.lineno}: {function.name} takes {', '.join(parameters) or 'nothing'}")
        if any(
            isinstance(each, ast.Call) and getattr(each.func, "id", "") == function.name for each in ast.walk(function)
        ):
            raise BadInput(f"{function.name} calls itself: a program has a fixed length")
        given = {name: self.read(each, names) for name, each in zip(parameters, node.args)}
        scope: dict[str, Node] = {"tokens": Source("tokens"), "indices": Source("indices"), **given}
        result = self._block(function.body, scope)
        if result is None:
            raise BadInput(f"{function.name} returns nothing")
        return result


def _core(name: str, values: list[Node], words: list[str]) -> Node | None:
    """The operation of that name, or None when there is none with such arguments."""
    plain = [value for value in values if not isinstance(value, Select)]
    first = values[0] if values else None
    if name == "select" and len(plain) == 2 == len(values) and len(words) == 1 and words[0] in COMPARISONS:
        return Select(((plain[0], plain[1], words[0]),))
    if name == "aggr" and isinstance(first, Select) and len(plain) == 1 and len(words) == 1 and words[0] in REDUCTIONS:
        return Aggregate(first, plain[0], words[0])
    known = len(words) == 2 and words[0] in COMPARISONS and words[1] in REDUCTIONS
    if name == "kqv" and len(plain) == 3 == len(values) and known:
        return Aggregate(Select(((plain[0], plain[1], words[0]),)), plain[2], words[1])
    if name == "sel_width" and isinstance(first, Select) and len(values) == 1 and not words:
        return Width(first)
    if name == "where" and len(plain) == 3 == len(values) and not words:
        return Map("where", tuple(plain))
    return None


def _joined(node: ast.BoolOp, parts: list[Node]) -> Node:
    """Selectors are joined by `and`, values by both."""
    word = "and" if isinstance(node.op, ast.And) else "or"
    selectors = [part for part in parts if isinstance(part, Select)]
    if len(selectors) == len(parts) and word == "and":
        return Select(tuple(condition for part in selectors for condition in part.conditions))
    if selectors:
        raise BadInput(f"line {node.lineno}: selectors can only be joined with `and`, and with selectors")
    result = parts[0]
    for part in parts[1:]:
        result = Map(word, (_sequence(result, ""), _sequence(part, "")))
    return result


def _sequence(node: Node, where: str) -> Sequence_:
    if isinstance(node, Select):
        raise BadInput(f"{where} is a selector where a value is needed: give it to aggr or sel_width")
    return node


def inner_nodes(node: Node) -> tuple[Node, ...]:
    """What an operation is made of."""
    if isinstance(node, Map):
        return node.parts
    if isinstance(node, Select):
        return tuple(part for key, query, _ in node.conditions for part in (key, query))
    if isinstance(node, Aggregate):
        return (node.selector, node.value)
    return (node.selector,) if isinstance(node, Width) else ()


def _walk(node: Node, seen: set[int] | None = None) -> Iterator[Node]:
    seen = set() if seen is None else seen
    if id(node) in seen:
        return
    seen.add(id(node))
    for inner in inner_nodes(node):
        yield from _walk(inner, seen)
    yield node
