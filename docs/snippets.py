"""Code for the pages of models, circuits, lenses and decoders: written by hand, or one of the thing's own tests.

A test makes a good example: it is short, it runs, and it says what is true. It is shown with the imports and the
helpers of its file that it uses, so that it can be copied.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decoder_pictures import OPTIONS
from hand_snippets import DECODER, HAND
from model_snippets import MODELS

ROOT = Path(__file__).parent.parent
ROOMS = {"decoders": "decoding"}
Function = ast.FunctionDef


@dataclass(frozen=True)
class Snippet:
    """code, and where it comes from (empty: written for the page)."""

    code: str
    test: str = ""


def snippet(kind: str, name: str, thing: Any) -> Snippet | None:
    """The example of a page; None where nothing uses the thing."""
    written = _written(kind, name, thing)
    if written:
        return Snippet(("import torch\n\n" if "torch." in written else "") + f"import sandlab as sl\n{written}".strip())
    found = [place for place in _uses().get(thing.__name__, []) if ROOMS.get(kind, kind) in place[0].parts]
    found = found or _uses().get(thing.__name__, [])
    if not found:
        return None
    file, function = min(found, key=lambda place: _length(place[1]))
    return Snippet(_complete(file, function), str(file.relative_to(ROOT)))


def _written(kind: str, name: str, thing: Any) -> str:
    if kind == "decoders":
        options = ", ".join(f"{option}={value!r}" for option, value in OPTIONS.get(name, {}).items())
        values = "values" if name in ("vgb", "value-guided") else "verdicts"
        verifier = f"TableVerifier(tree.{values}(accepted), 2)" if thing.needs_verifier else "None"
        return DECODER.format(name=thing.__name__, options=options, verifier=verifier)
    return MODELS.get(name, "") if kind == "models" else HAND.get(f"{kind}/{name}", "")


def _length(function: Function) -> tuple[int, int]:
    """Tests without fixtures and parameters first, then the shortest; a single line says too little."""
    lines = (function.end_lineno or 0) - function.lineno
    return len(function.args.args) + len(function.decorator_list), lines if lines > 1 else 9


@functools.cache
def _uses() -> dict[str, list[tuple[Path, Function]]]:
    """Python name → the tests that call it."""
    found: dict[str, list[tuple[Path, Function]]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for function in _tests(_tree(file)):
            for name in {_called(node) for node in ast.walk(function) if isinstance(node, ast.Call)} - {""}:
                found.setdefault(name, []).append((file, function))
    return found


@functools.cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _tests(tree: ast.Module) -> Iterator[Function]:
    return (node for node in tree.body if isinstance(node, Function) and node.name.startswith("test_"))


def _called(call: ast.Call) -> str:
    """The last name of what is called; also of what is handed to a decorator's factory: never a private one."""
    target = call.func
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _complete(file: Path, function: Function) -> str:
    """The test's body (the whole test where it has arguments) after the imports and helpers that it needs."""
    text, tree = file.read_text(encoding="utf-8"), _tree(file)
    whole = bool(function.args.args or function.decorator_list)
    needed, chosen = _names(function), []
    helpers = [node for node in tree.body if not (isinstance(node, Function) and node.name.startswith("test_"))]
    for node in reversed(helpers):
        if (made := _bound(node)) & needed and not isinstance(node, ast.Expr):
            chosen.append(node)
            needed |= _names(node) if not isinstance(node, (ast.Import, ast.ImportFrom)) else made & needed
    parts = [_source(text, node, needed) for node in reversed(chosen)]
    imports = [part for part in parts if part.startswith(("import ", "from "))]
    rest = [part for part in parts if not part.startswith(("import ", "from "))]
    body = _source(text, function, needed) if whole else _body(text, function)
    return "\n\n".join(part for part in ["\n".join(imports), *rest, body] if part)


def _body(text: str, function: Function) -> str:
    lines = text.splitlines()[function.body[0].lineno - 1 : function.end_lineno]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] if not line[:indent].strip() else line for line in lines)


def _source(text: str, node: ast.stmt, needed: set[str]) -> str:
    """The lines of a statement with its decorators; of an import only the names that are used."""
    if isinstance(node, ast.ImportFrom):
        names = ", ".join(each.name for each in node.names if (each.asname or each.name) in needed)
        return f"from {'.' * node.level}{node.module or ''} import {names}"
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def _names(node: ast.AST) -> set[str]:
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    found |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}  # fixtures
    return found - set(dir(builtins))


def _bound(node: ast.stmt) -> set[str]:
    """What a statement of the file defines."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(each.asname or each.name).partition(".")[0] for each in node.names}
    if isinstance(node, (Function, ast.ClassDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {name for target in targets for name in _names(target)}
