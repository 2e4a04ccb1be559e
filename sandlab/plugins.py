"""One's own worlds, models, lenses, circuits and studies: files and packages that are loaded beside SandLab's own.

A plug-in is a Python file (`--plugin my_lab.py`, or SANDLAB_PLUGINS=my_lab.py:other.py) or an installed package that
names a module in the entry-point group `sandlab`. Whatever it registers works everywhere a built-in does, in worker
processes too: the file is imported under its own name, and workers find it by the same environment variable.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from sandlab.errors import BadInput, nearest

__all__ = ["GROUP", "VARIABLE", "add", "find", "load_all"]

VARIABLE, GROUP = "SANDLAB_PLUGINS", "sandlab"
_loaded: dict[str, ModuleType] = {}


def add(source: str | Path) -> ModuleType:
    """Load a plug-in, a file or the dotted name of a module, here and in every worker started from here."""
    module = _load(str(source))
    place = str(Path(str(module.__file__)).resolve()) if _is_file(str(source)) else str(source)
    known = [each for each in os.environ.get(VARIABLE, "").split(os.pathsep) if each]
    if place not in known:
        os.environ[VARIABLE] = os.pathsep.join([*known, place])
    return module


def find(reference: str) -> Any:
    """What "my_lab.py:MyModel" or "package.module:MyModel" names, in a plug-in that is loaded.

    Nothing is loaded here: a saved model or a foreign store may name a file, and only the user may run it.
    """
    load_all()
    source, colon, name = reference.rpartition(":")
    if not colon or not name.isidentifier():
        raise BadInput(f"name a file and what it defines, such as my_lab.py:MyModel, got {reference!r}")
    module = _loaded.get(_stem(source)) or _loaded.get(source)
    if module is None:
        raise BadInput(f"{source} is not loaded: add --plugin {source}, or call sandlab.plugins.add({source!r})")
    if not hasattr(module, name):
        known = [each for each in vars(module) if not each.startswith("_")]
        raise BadInput(f"{source} defines no {name!r}. {nearest(name, known)}".strip())
    return getattr(module, name)


def load_all() -> None:
    """Load what the environment and the installed packages name; each once."""
    for source in os.environ.get(VARIABLE, "").split(os.pathsep):
        if source:
            _load(source)
    _load_installed()


@functools.cache
def _load_installed() -> None:
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        try:
            _loaded[point.value] = point.load()
        except Exception as problem:
            raise BadInput(
                f"the plug-in {point.name} cannot be loaded: {type(problem).__name__}: {problem}"
            ) from problem


def _load(source: str) -> ModuleType:
    name = _stem(source) if _is_file(source) else source
    if name in _loaded and (not _is_file(source) or _same_file(_loaded[name], source)):
        return _loaded[name]
    try:
        module = _import_file(name, Path(source).resolve()) if _is_file(source) else importlib.import_module(source)
    except BadInput:
        raise
    except Exception as problem:
        where = f"{type(problem).__name__}: {problem}"
        raise BadInput(f"the plug-in {source} cannot be loaded: {where}") from problem
    _loaded[name] = module
    return module


def _import_file(name: str, file: Path) -> ModuleType:
    """The module of a file; its folder is searched from now on, so that a worker can import it by its name."""
    if not file.is_file():
        raise BadInput(f"there is no file {file}")
    if not name.isidentifier():
        raise BadInput(f"a plug-in's file must be named like a Python module, got {file.name!r}")
    known = importlib.util.find_spec(name)
    if known is not None and (known.origin is None or Path(known.origin).resolve() != file):
        raise BadInput(f"{file.name} has the name of another module ({known.origin}): give the file another name")
    folder = str(file.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    main = sys.modules.get("__main__")
    if main is not None and _same_file(main, str(file)):
        return main
    return importlib.import_module(name)


def _same_file(module: ModuleType, source: str) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == Path(source).resolve()


def _is_file(source: str) -> bool:
    return source.endswith(".py")


def _stem(source: str) -> str:
    return Path(source).stem if _is_file(source) else source
