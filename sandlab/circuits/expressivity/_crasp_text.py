"""The text of a C-RASP program as operations."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from sandlab.circuits.expressivity._crasp_nodes import (
    And,
    AtLeastZero,
    Choice,
    Count,
    Formula,
    Letter,
    Linear,
    Not,
    Truth,
)
from sandlab.errors import BadInput, require


def parse(text: str) -> tuple[str, Formula]:
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
