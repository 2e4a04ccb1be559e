"""Registries: a decorator and a dictionary. A room finds its own files, so a new thing is one new file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

from sandlab.errors import BadInput, nearest

__all__ = ["KINDS", "get", "lazy_room", "name_of", "names", "register", "summary"]

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


def register(kind: str, name: str) -> Callable[[Thing], Thing]:
    """Enter the decorated class or function into registry `kind` under `name` (lower-case words joined by hyphens)."""

    def enter(thing: Thing) -> Thing:
        known = _entries[kind].get(name)
        if known is not None and _place(known) != _place(thing):
            raise BadInput(f"{kind} already has a {name!r} (in {_place(known)[0]}): choose another name")
        _entries[kind][name] = thing
        return thing

    return enter


def get(kind: str, name: str) -> Any:
    """The thing registered as `name`; an unknown name suggests the nearest one."""
    _load(kind)
    if name not in _entries[kind]:
        raise BadInput(f"no {kind} called {name!r}: {nearest(name, _entries[kind]) or f'see `sandlab list {kind}`'}")
    return _entries[kind][name]


def names(kind: str) -> list[str]:
    """Every registered name of a kind, sorted."""
    _load(kind)
    return sorted(_entries[kind])


def name_of(kind: str, thing: Any) -> str:
    """The name under which `thing` (or its class) is registered."""
    _load(kind)
    for name, known in _entries[kind].items():
        if known is thing or known is type(thing):
            return name
    raise BadInput(f"{thing!r} is not registered among the {kind}")


def summary(thing: Any) -> str:
    """First line of the thing's docstring (or its title, for a study)."""
    text = getattr(thing, "title", None) or (thing.__doc__ or "").strip()
    return text.splitlines()[0] if text else ""


def _place(thing: Any) -> tuple[str, str]:
    return getattr(thing, "place", None) or (thing.__module__, thing.__qualname__)


def _load(kind: str) -> None:
    if kind not in KINDS:
        raise BadInput(f"no registry called {kind!r}: there are {', '.join(KINDS)}. {nearest(kind, KINDS)}".strip())
    _modules(KINDS[kind])


def _modules(package_name: str) -> list[Any]:
    """Every module of a package, imported, sub-packages included."""
    package = importlib.import_module(package_name)
    found = pkgutil.walk_packages(package.__path__, prefix=package_name + ".")
    return [importlib.import_module(module.name) for module in sorted(found, key=lambda module: module.name)]


def lazy_room(package_name: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a room: its public names are the `__all__` of its files, found on first use.

    A room imports none of its files until a name is asked for: `from sandlab.worlds.dyck import Dyck` loads one file.
    """

    def public() -> dict[str, Any]:
        return {name: getattr(module, name) for module in _modules(package_name) for name in module_all(module)}

    def module_all(module: Any) -> list[str]:
        return list(getattr(module, "__all__", []))

    def find(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        package = importlib.import_module(package_name)
        try:
            return importlib.import_module(f"{package_name}.{name}")
        except ModuleNotFoundError as missing:
            if missing.name != f"{package_name}.{name}":
                raise
        found = public()
        if name not in found:
            raise AttributeError(f"{package_name} has no {name!r}. {nearest(name, found)}".strip())
        vars(package).update(found)
        return found[name]

    return find, lambda: sorted(public())
