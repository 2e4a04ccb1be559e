"""Shapes in signatures are checked while the tests run.

`install()` puts an import hook before the package. Every function with an array such as `Float[Tensor, "batch time"]`
in its signature then checks its array arguments and its result, every dataclass with such a field its fields;
axes of one name have one size within a call. A function may refuse an argument itself: its own error comes first.
Nothing else is looked at, and a combination of shapes that was found right once is only looked up afterwards. Inside a
compiler's trace (`torch.export`, `torch.compile`) nothing is checked: what is traced must be the package's own code.
"""

from __future__ import annotations

import ast
import builtins
import collections.abc
import dataclasses
import functools
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import sys
import types
import typing
import unittest.mock
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import torch
from jaxtyping import AbstractArray, jaxtyped

EDITION = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
"""Names what is kept: a module compiled by another edition of this file is compiled again."""
CHECK, CHECK_FIELDS = "__check_shapes__", "__check_field_shapes__"
KINDS = ("Bool", "Float", "Int")
ARRAYS = (torch.Tensor, np.ndarray)
# Names that a module may import for type checkers alone.
USUAL = {
    "Bool": jaxtyping.Bool,
    "Float": jaxtyping.Float,
    "Tensor": torch.Tensor,
    "torch": torch,
    "np": np,
}
SEVERAL = (list, collections.abc.Sequence, collections.abc.Iterable)
NAMED = (dict, collections.abc.Mapping)


class ShapeError(TypeError):
    """An argument, a result or a field does not have the shape or the kind that its annotation says."""


class ShapeWarning(UserWarning):
    """The same, where it is only told."""


strict = True
"""Whether what is wrong is an error, or a warning; `conftest.py` says for which tests."""


def _complain(wrong: str) -> None:
    if strict:
        raise ShapeError(wrong)
    warnings.warn(wrong, ShapeWarning, stacklevel=3)


# --- the import hook


def install(package: str) -> None:
    """Check the shapes of everything that is imported from the package from now on."""
    sys.meta_path.insert(0, _Finder(package))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.split(".")[0] != self.package:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles with the checks in; what it compiled is kept as Python keeps it, under a name of its own."""

    def get_code(self, fullname: str) -> types.CodeType | None:
        with unittest.mock.patch("importlib._bootstrap_external.cache_from_source", _cache_of):
            return super().get_code(fullname)

    def source_to_code(self, data: Any, path: Any, *, _optimization: int = -1) -> types.CodeType:
        return compile(_Decorate().visit(ast.parse(data)), path, "exec", dont_inherit=True)

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module).update({CHECK: check_call, CHECK_FIELDS: check_fields})
        super().exec_module(module)


def _cache_of(path: str, debug_override: bool | None = None) -> str:
    return importlib.util.cache_from_source(path, optimization=f"shapes{EDITION}")


class _Decorate(ast.NodeTransformer):
    """Decorates functions (innermost) and classes (outermost) whose annotations speak of arrays with axes."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        each = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if _speak_of_axes([*(one.annotation for one in each), node.returns]):
            node.decorator_list.append(_name(CHECK, node))
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        if _speak_of_axes([each.annotation for each in node.body if isinstance(each, ast.AnnAssign)]):
            node.decorator_list.insert(0, _name(CHECK_FIELDS, node))
        return node


def _name(name: str, at: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def _speak_of_axes(annotations: Iterable[ast.expr | None]) -> bool:
    return any(
        isinstance(part, ast.Subscript)
        and isinstance(part.value, ast.Name)
        and part.value.id in ("Bool", "Float", "Int")
        for annotation in annotations
        if annotation is not None
        for part in ast.walk(annotation)
    )


# --- what is checked


@dataclasses.dataclass
class _Plan:
    """What to check at a call: (position, name, hint) of the arguments that hold arrays, and the hint of the result."""

    arguments: list[tuple[int, str, Any]]
    result: Any
    known: set[Hashable] = dataclasses.field(default_factory=set)


def check_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its array arguments and its array result checked against the annotations."""

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        if torch.compiler.is_compiling():
            return function(*args, **options)
        plan = _plans.get(function.__code__) or _plan(function)
        values = [args[k] if k < len(args) else options.get(name, _ABSENT) for k, name, _ in plan.arguments]
        given = tuple(map(_key, values))
        wrong = "" if given in plan.known else _wrong(function, plan, values, given)
        try:
            result = function(*args, **options)
        except Exception as problem:  # a refusal of what does not fit, perhaps: it stands
            if wrong:
                problem.add_note(wrong)
            raise
        whole = (given, _key(result)) if plan.result is not None else given
        wrong = wrong or ("" if whole in plan.known else _wrong(function, plan, values, whole, result))
        if wrong:
            _complain(wrong)
        return result

    return checked


def check_fields(cls: type) -> type:
    """The dataclass, with its array fields checked when an instance has been made."""
    if "__init__" not in vars(cls) or not dataclasses.is_dataclass(cls):
        return cls
    make = cls.__init__  # type: ignore[misc]

    @functools.wraps(make)
    def checked(self: Any, *args: Any, **options: Any) -> None:
        make(self, *args, **options)
        if not torch.compiler.is_compiling():
            plan = _plans.get(cls) or _field_plan(cls)
            values = [getattr(self, name) for _, name, _ in plan.arguments]
            given = tuple(map(_key, values))
            if given not in plan.known and (wrong := _wrong(cls, plan, values, given)):
                _complain(wrong)

    cls.__init__ = checked  # type: ignore[misc]
    return cls


_ABSENT = object()
_plans: dict[Any, _Plan] = {}


def _plan(function: Callable[..., Any]) -> _Plan:
    hints = annotations_with_axes(function.__annotations__, function.__globals__)
    places = list(inspect.signature(function).parameters.values())
    arguments = [
        (_position(k, each), each.name, hints[each.name]) for k, each in enumerate(places) if each.name in hints
    ]
    plan = _plans[function.__code__] = _Plan(arguments, hints.get("return"))
    return plan


def _position(k: int, parameter: inspect.Parameter) -> int:
    return sys.maxsize if parameter.kind is inspect.Parameter.KEYWORD_ONLY else k


def _field_plan(cls: type) -> _Plan:
    hints = annotations_with_axes(cls.__annotations__, vars(sys.modules[cls.__module__]))
    plan = _plans[cls] = _Plan([(0, name, hint) for name, hint in hints.items()], None)
    return plan


def annotations_with_axes(annotations: Mapping[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """The annotations that speak of arrays with axes, evaluated."""
    found = {}
    for name, text in annotations.items():
        hint = eval(text, names, _Names(names)) if isinstance(text, str) else text
        if _has_axes(hint):
            found[name] = hint
    return found


class _Names(dict[str, Any]):
    """Names of a module; one that exists for type checkers alone stands for a class of its own.

    `Int` means whole numbers of any width here, unsigned ones (small tables, images) included.
    """

    def __init__(self, known: Mapping[str, Any]) -> None:
        super().__init__()
        self.known = known

    def __missing__(self, name: str) -> Any:
        if name == "Int":
            return jaxtyping.Integer
        if name in self.known or hasattr(builtins, name):
            raise KeyError(name)
        return USUAL.get(name, type(name, (), {}))


def _has_axes(hint: Any) -> bool:
    if typing.get_origin(hint) is collections.abc.Callable:
        return False
    return _is_array(hint) or any(_has_axes(each) for each in typing.get_args(hint))


def _is_array(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, AbstractArray)


# --- one check


def _key(value: Any) -> Hashable:
    """What a check depends on: shapes and kinds."""
    if isinstance(value, ARRAYS):
        return (value.shape, value.dtype)
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    if isinstance(value, Mapping):
        return tuple(map(_key, value.values()))
    return type(value)


def _wrong(owner: Any, plan: _Plan, values: list[Any], key: Hashable, *result: Any) -> str:
    """What does not fit, in a sentence; nothing when all does, which is then known of these shapes."""
    with jaxtyped("context"):
        for value, (_, name, hint) in zip(values, plan.arguments, strict=True):
            if value is not _ABSENT and not _fits(value, hint):
                return _sentence(owner, name, hint, value, plan, values)
        if result and plan.result is not None and not _fits(result[0], plan.result):
            return _sentence(owner, "the result", plan.result, result[0], plan, values)
    plan.known.add(key)
    return ""


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says, as far as arrays go."""
    if _is_array(hint):
        if isinstance(value, ARRAYS) and 0 in value.shape:  # what has no elements has no kind: torch makes it float
            hint = jaxtyping.Shaped[hint.array_type, hint.dim_str]
        return isinstance(value, hint)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, each) for each in inner)
    if origin is tuple and isinstance(value, tuple) and _has_axes(hint):
        inner = inner[:1] * len(value) if inner[-1] is ... else inner
        return len(inner) == len(value) and all(map(_fits, value, inner))
    if origin in SEVERAL and isinstance(value, (list, tuple)) and _has_axes(hint):
        return all(_fits(each, inner[0]) for each in value)
    if origin in NAMED and isinstance(value, Mapping) and _has_axes(hint):
        return all(_fits(each, inner[-1]) for each in value.values())
    if isinstance(hint, type):
        return isinstance(value, hint)
    return not isinstance(value, ARRAYS) or hint is Any


def _sentence(owner: Any, name: str, hint: Any, value: Any, plan: _Plan, values: Sequence[Any]) -> str:
    beside = ", ".join(f"{other}: {_words(each)}" for each, (_, other, _) in zip(values, plan.arguments))
    return f"{owner.__module__}.{owner.__qualname__}: {name} must be {_hint(hint)}, got {_words(value)} ({beside})"


def _hint(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _words(value: Any) -> str:
    if isinstance(value, ARRAYS):
        return f"{value.dtype} {tuple(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_words, value))})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_words(each)}' for name, each in value.items())}}}"
    return type(value).__name__
