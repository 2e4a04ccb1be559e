"""The text of a RASP-L program as operations."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from sandlab.circuits.expressivity._raspl_nodes import (
    COMPARISONS,
    REDUCTIONS,
    Aggregate,
    Map,
    Node,
    Number,
    Select,
    Sequence_,
    Source,
    Width,
)
from sandlab.errors import BadInput

_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"
}  # fmt: skip
_COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="
}  # fmt: skip


class Reader:
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
