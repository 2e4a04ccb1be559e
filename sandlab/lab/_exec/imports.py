"""Reading a source file without running it: its top-level parts, and the dotted names each part refers to."""

from __future__ import annotations

import ast
import functools
import io
import itertools
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sandlab.registry import KINDS

__all__ = ["Source", "file_meaning", "file_references", "meaning", "read_source"]

# Marks that change no result: a file with them counts as the same file without them. That of the door refuses calls;
# that of threads says nothing inside a job, which has settled their number.
_MARKS = {
    "from sandlab._door import guarded": "@guarded",
    "from sandlab.learning._engine.threads import few_threads": "@few_threads",
}
_LOOK_UPS = ("sandlab.get", "sandlab.names", "sandlab.registry.get", "sandlab.registry.names")


@dataclass(frozen=True)
class Source:
    """A module's text and syntax.

    nodes        every node of the syntax
    definitions  name → the top-level statements that bind it
    aliases      name → the dotted name it was imported as, at the top or inside a function
    always       top-level statements that run for their effect and bind nothing by themselves
    """

    module: str
    text: str
    syntax: ast.Module
    nodes: tuple[ast.AST, ...]
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    always: list[ast.stmt] = field(default_factory=list)

    def references(self, parts: Iterable[ast.AST] | None = None) -> set[str]:
        """Dotted names the parts (default: the whole file) refer to: `sl.worlds.Dyck` is "sandlab.worlds.Dyck"."""
        nodes = self.nodes if parts is None else [node for part in parts for node in ast.walk(part)]
        found: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Attribute | ast.Name):
                found.update(self._chain(node))
            elif isinstance(node, ast.Call):
                found.update(self._looked_up(node))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                found.update(dotted for _, dotted, _ in _bound(node, self.module))
        return found

    def reachable(self, names: Iterable[str], undecorated: str = "") -> list[ast.stmt]:
        """The top-level statements that code starting from `names` can reach, in the file's order.

        undecorated   a function whose decorators lead nowhere
        """
        waiting, seen = list(names), set()
        kept = {id(part): part for part in self.always}
        waiting += [name for part in self.always for name in _names(part)]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for part in self.definitions.get(name, []):
                kept[id(part)] = part
                idle = getattr(part, "decorator_list", []) if name == undecorated else []
                waiting += _names(part, without=idle)
        return sorted(kept.values(), key=lambda part: part.lineno)

    def excerpt(self, parts: Iterable[ast.stmt]) -> str:
        """The source text of some statements, decorators included."""
        lines = self.text.splitlines()
        pieces = []
        for part in parts:
            decorators = getattr(part, "decorator_list", [])
            first = min([part.lineno, *(decorator.lineno for decorator in decorators)])
            pieces.append("\n".join(lines[first - 1 : part.end_lineno]))
        return "\n".join(pieces)

    def _chain(self, node: ast.expr) -> list[str]:
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.aliases:
            return []
        return [".".join([self.aliases[node.id], *reversed(names)])]

    def _looked_up(self, call: ast.Call) -> list[str]:
        """The rooms that `get(kind, name)` or `names(kind)` may reach."""
        if not set(self._chain(call.func)) & set(_LOOK_UPS):
            return []
        kind = call.args[0] if call.args else None
        if isinstance(kind, ast.Constant) and kind.value in KINDS:
            return [f"{KINDS[str(kind.value)]}.*"]
        return [f"{room}.*" for room in KINDS.values()]


def meaning(text: str, nodes: Iterable[ast.AST] | None = None) -> str:
    """A source text without what cannot change a result: docstrings, annotations, comments, blank lines.

    Spans are cut out of the text itself, so that every version of Python gives the same. `nodes` are those of its
    syntax, where they are known already.
    """
    lines = text.encode().splitlines(keepends=True)
    starts = [0, *itertools.accumulate(len(line) for line in lines)]

    def offset(row: int, column: int) -> int:
        return starts[row - 1] + column

    cuts = [(offset(*first), offset(*last)) for first, last in _idle_spans(text, nodes)]
    data, kept, done = text.encode(), [], 0
    for first, last in sorted(cuts):
        kept.append(data[done : max(done, first)])
        done = max(done, last)
    kept.append(data[done:])
    left = b"".join(kept).decode()
    return "\n".join(line.rstrip() for line in left.splitlines() if line.strip())


def _idle_spans(text: str, nodes: Iterable[ast.AST] | None) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """(row, byte column) of the beginning and end of every docstring, annotation and comment."""
    for node in nodes if nodes is not None else ast.walk(ast.parse(text)):
        found: list[ast.expr | ast.stmt | None] = [getattr(node, "returns", None), getattr(node, "annotation", None)]
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and body:
            found += [body[0]] if _is_text(body[0]) else []
        for each in found:
            if each is not None:
                yield (each.lineno, each.col_offset), (each.end_lineno or 0, each.end_col_offset or 0)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline) if "#" in text else ()
    for token in tokens:
        if token.type == tokenize.COMMENT:
            row, column = token.start
            before = len(token.line[:column].encode())
            yield (row, before), (row, before + len(token.string.encode()))


@functools.cache
def file_meaning(module: str, file: Path) -> str:
    """What counts of a whole file."""
    source = read_source(module, file)
    return meaning(source.text, source.nodes)


@functools.cache
def read_source(module: str, file: Path) -> Source:
    """Parse a file. Read once per process: the text that counts is the one that was imported, not a later edit."""
    text = _unmarked(file.read_text(encoding="utf-8"))
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    syntax = ast.parse(text)
    source = Source(f"{package}.", text, syntax, tuple(ast.walk(syntax)))
    for node in source.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            source.aliases.update({alias: head for alias, _, head in _bound(node, source.module)})
    for part in source.syntax.body:
        for name in _binds(part):
            source.definitions.setdefault(name, []).append(part)
        if not _binds(part) and not _is_text(part):
            source.always.append(part)
    return source


def _unmarked(text: str) -> str:
    """A source text without the marks that change no result, each in a line of its own."""
    for imported, mark in _MARKS.items():
        if imported in text:
            text = re.sub(rf"^(?:{re.escape(imported)}|[ \t]*{mark})[ \t]*$", "", text, flags=re.MULTILINE)
    return text


@functools.cache
def file_references(module: str, file: Path) -> frozenset[str]:
    """Dotted names a whole file refers to."""
    return frozenset(read_source(module, file).references())


def _bound(node: ast.Import | ast.ImportFrom, package: str) -> list[tuple[str, str, str]]:
    """(name bound in the file, dotted name imported, dotted name the bound one stands for) of an import."""
    if isinstance(node, ast.Import):
        pairs = [(item.asname, item.name) for item in node.names]
        return [
            (alias or name.partition(".")[0], name, name if alias else name.partition(".")[0]) for alias, name in pairs
        ]
    base = node.module or ""
    if node.level:
        parents = package.rstrip(".").split(".")
        parents = parents[: len(parents) - node.level + 1]
        base = ".".join([*parents, *([node.module] if node.module else [])])
    return [(item.asname or item.name, f"{base}.{item.name}", f"{base}.{item.name}") for item in node.names]


def _binds(part: ast.stmt) -> list[str]:
    """Names a top-level statement gives a meaning to."""
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [part.name]
    if isinstance(part, ast.Import | ast.ImportFrom):
        return [name for name, _, _ in _bound(part, "")]
    targets = getattr(part, "targets", None) or [getattr(part, "target", None)]
    plain = isinstance(part, ast.Assign | ast.AnnAssign | ast.AugAssign)
    return [node.id for target in targets if plain for node in ast.walk(target) if isinstance(node, ast.Name)]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _names(part: ast.AST, without: Iterable[ast.AST] = ()) -> list[str]:
    """Names that a part takes from outside of itself: neither its parameters nor what it binds."""
    return list(_free(part, frozenset(), {id(node) for node in without}))


def _free(node: ast.AST, bound: frozenset[str], left_out: set[int]) -> Iterator[str]:
    """Names inside a node that are not bound by the functions and comprehensions around them."""
    if isinstance(node, ast.Name):
        if node.id not in bound and isinstance(node.ctx, ast.Load):
            yield node.id
        return
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id not in bound:
        yield node.target.id  # read before it is written
    inner = bound
    if isinstance(node, _FUNCTIONS):
        inner = bound | _locals(node)
    elif isinstance(node, _COMPREHENSIONS):
        inner = bound | {name for each in node.generators for name in _stored(each.target)}
    for field_name, value in ast.iter_fields(node):
        # Decorators, defaults and annotations belong to what is around a function.
        own = not isinstance(node, _FUNCTIONS) or field_name == "body"
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST) and id(each) not in left_out:
                yield from _free(each, inner if own else bound, left_out)


def _locals(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Parameters of a function, and the names that its body binds and does not call global."""
    arguments = function.args
    found = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    found |= {each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None}
    shared: set[str] = set()
    waiting: list[ast.AST] = list(function.body) if isinstance(function.body, list) else [function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Global):
            shared.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if not isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))
    return found - shared


def _stored(target: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def _is_text(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
