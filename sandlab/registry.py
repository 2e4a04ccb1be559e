"""Registries and lazy rooms: a new world, model, circuit, decoder, lens or study is one new file.

A room's public names stand in its generated `__init__.pyi` (`make stubs`): editors and type checkers read it, and so
does the room itself, so that asking for one name loads one file.
"""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from sandlab._door import guarded
from sandlab.checking import checked
from sandlab.errors import BadInput, nearest, shown
from sandlab.plugins import load_all as load_plugins

__all__ = [
    "AXES",
    "KINDS",
    "Tags",
    "get",
    "kebab",
    "lazy_room",
    "name_of",
    "names",
    "public_names",
    "register",
    "summary",
    "tags",
]

KINDS = {
    "worlds": "sandlab.worlds",
    "models": "sandlab.models",
    "circuits": "sandlab.circuits",
    "decoders": "sandlab.decoding",
    "lenses": "sandlab.lenses",
    "studies": "sandlab.studies",
}

Thing = TypeVar("Thing")
_entries: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
_tags: dict[tuple[str, str], Tags] = {}


def kebab(name: str) -> str:
    """A Python name in lower-case words joined by hyphens: "InContextMarkov" is "in-context-markov"."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1-\2", name)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1-\2", words).replace("_", "-").lower()


@dataclass(frozen=True)
class Tags:
    """What a good sandbox is (Liu 2024, thesis, chapter 1), for the entries of worlds and studies.

    axis             what it varies: "task design", "model class", "learning process", or "inference"
    minimal          the simplest setting in which its question can be asked
    representative   what is found in it is meant to hold beyond it
    controllable     its parameters make it harder or easier
    """

    axis: str
    minimal: bool = True
    representative: bool = True
    controllable: bool = True


AXES = {
    **dict.fromkeys(("diffusions", "hmm", "parallel"), "task design"),
    **dict.fromkeys(("nce", "ngrams", "distillation", "reasoning"), "learning process"),
    **dict.fromkeys(("verifier", "decoding"), "inference"),
}
"""Chapter → axis of its sandboxes; the chapters about what a model can represent are on the axis "model class"."""


@guarded
def register(
    kind: str, *, minimal: bool = True, representative: bool = True, controllable: bool = True
) -> Callable[[Thing], Thing]:
    """Enter the decorated class or function into registry `kind` under its own name in kebab-case.

    A study is entered under its `name`. What is entered checks its arguments (see `sandlab.checking`). The flags are
    those of `Tags`.
    """

    def enter(thing: Thing) -> Thing:
        thing = thing if kind in ("studies", "models") else checked(thing)  # models check their configs
        name = _name(thing)
        axis = next((AXES[part] for part in _origin(thing)[0].split(".") if part in AXES), "model class")
        _tags[kind, name] = Tags(axis, minimal, representative, controllable)
        known = _entries[kind].get(name)
        if known is not None and _origin(known) != _origin(thing):
            raise BadInput(f"{kind} already has a {name!r} (in {_origin(known)[0]}): choose another name")
        _entries[kind][name] = thing
        return thing

    return enter


@guarded
def get(kind: str, name: str) -> Any:
    """The thing registered as `name`; an unknown name suggests the nearest one."""
    _check_kind(kind)
    if not isinstance(name, str):
        raise BadInput(f"a name must be a word, got {shown(name)}: see `sandlab list {kind}`")
    if name not in _entries[kind] and (module := _module_of(kind, name)) is not None:
        importlib.import_module(module)
    if name not in _entries[kind]:
        known = names(kind)
        if name not in _entries[kind]:
            raise BadInput(f"no {kind} called {name!r}: {nearest(name, known) or f'see `sandlab list {kind}`'}")
    return _entries[kind][name]


@guarded
def tags(kind: str, name: str) -> Tags:
    """Axis and qualities of a registered sandbox."""
    get(kind, name)
    return _tags[kind, name]


@guarded
def names(kind: str) -> list[str]:
    """Every registered name of a kind, sorted. The names of studies are those of their files: none is imported."""
    _check_kind(kind)
    load_plugins()
    if kind == "studies":
        return sorted({*_study_modules(), *_entries[kind]})
    modules(KINDS[kind])
    return sorted(_entries[kind])


def name_of(kind: str, thing: object) -> str:
    """The name under which `thing` (or its class) is registered."""
    for name in names(kind):
        known = _entries[kind].get(name)
        if known is thing or known is type(thing):
            return name
    raise BadInput(f"{thing!r} is not registered among the {kind}")


def summary(thing: object) -> str:
    """First line of the thing's docstring (or its title, for a study)."""
    text = getattr(thing, "title", None) or (thing.__doc__ or "").strip()
    return text.splitlines()[0] if text else ""


def modules(package_name: str) -> list[ModuleType]:
    """Every module of a package, imported, sub-packages included."""
    package = importlib.import_module(package_name)
    found = pkgutil.walk_packages(package.__path__, prefix=package_name + ".")
    return [importlib.import_module(module.name) for module in sorted(found, key=lambda module: module.name)]


@functools.cache
def public_names(package_name: str) -> dict[str, str]:
    """Public name → module that defines it, read from the room's `__init__.pyi`."""
    folder = Path(str(importlib.import_module(package_name).__file__)).parent
    stub = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8"))
    return {
        each.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.module
        for each in node.names
        if each.asname
    }


def lazy_room(package_name: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a room: a public name loads the file that defines it, and nothing else."""

    def find(name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        known = public_names(package_name)
        if name in known:
            value = getattr(importlib.import_module(known[name]), name)
            setattr(importlib.import_module(package_name), name, value)
            return value
        try:
            return importlib.import_module(f"{package_name}.{name}")
        except ModuleNotFoundError as missing:
            if missing.name != f"{package_name}.{name}":
                raise
        raise AttributeError(f"{package_name} has no {name!r}. {nearest(name, known)}".strip())

    return find, lambda: sorted(public_names(package_name))


def _name(thing: Any) -> str:
    return kebab(thing.__name__) if isinstance(thing, (type, FunctionType)) else str(thing.name)


def _origin(thing: object) -> tuple[str, str]:
    return thing.__module__, getattr(thing, "__qualname__", "study")


def _check_kind(kind: str) -> None:
    if not isinstance(kind, str) or kind not in KINDS:
        hint = nearest(kind, KINDS) if isinstance(kind, str) else ""
        raise BadInput(f"no registry called {shown(kind)}: there are {', '.join(KINDS)}. {hint}".strip())


def _module_of(kind: str, name: str) -> str | None:
    """The module that registers `name`, when it can be told without importing the room."""
    if kind == "studies":
        return _study_modules().get(name)
    return next((module for public, module in public_names(KINDS[kind]).items() if kebab(public) == name), None)


@functools.cache
def _study_modules() -> dict[str, str]:
    """Study → module: `studies/dyck/balance.py` is "dyck/balance", whatever folder of its chapter it lies in."""
    room = Path(__file__).parent / "studies"
    found = {}
    for file in sorted(room.glob("*/**/*.py")):
        parts = file.relative_to(room).with_suffix("").parts
        if not any(part.startswith("_") for part in parts):
            found[f"{parts[0]}/{parts[-1]}".replace("_", "-")] = ".".join(("sandlab.studies", *parts))
    return found
