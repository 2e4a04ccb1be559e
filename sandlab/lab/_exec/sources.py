"""Code versions: a hash of the sources a job depends on.

Of the job's own module, the parts that the job can reach count (a figure drawn beside it may change freely, also one
whose name a function uses for a variable of its own, or a class for a field); of every other module it needs, directly
or through others, the whole text: all of `sandlab`, and files of the job's own project.
Docstrings, comments and annotations count nowhere: they cannot change a result. Nor does the text of the door
(`sandlab.checking` and what it asks), which refuses calls or lets them through as they are, nor that of the judging
(`sandlab.studies.claims`), which begins when the results are there, nor that of CUDA graphs, which replay an update as
it is, nor that of the LSTM's scan, a GPU's way to what the layer writes out step by step, nor that of Hugging Face's
folders, which no job writes or reads, nor the mark `@few_threads` of what a job has settled before it trains.
Names taken from a room (`worlds.Dyck`) lead to the file that defines them; a registry look-up leads to the whole room.
That models can be saved leads nowhere: a new model makes no result of another stale.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sandlab.errors import BadInput
from sandlab.lab._exec.imports import file_meaning, file_references, meaning, read_source

__all__ = [
    "changed_modules",
    "closure",
    "code_parts",
    "code_version",
    "identity",
    "lives_here_only",
    "module_version",
    "package_version",
]

PACKAGE = Path(__file__).resolve().parents[2]
# Code that may refuse a call but never changes what it gives, code that judges what was collected, code that replays
# updates on a GPU as they are, code by which a GPU computes what the layer of an LSTM writes out step by step (its
# states and gradients are compared with the layer's by tests, and its kernels at their first use), and code that writes
# models for elsewhere: it counts as it was when results were first recorded, or, where it was not there then, not at
# all.
_DOOR = {
    "sandlab.checking": "f4c51456f11014b0666a883cf61003f95873b650b8a06d16145f0643eb365b7b",
    "sandlab.studies.claims": "a8016c39a6b3bdfcb3ee9602d7ab3e6a7b38f795f7907703f1c1aa9a4474f2dc",
    "sandlab._explaining": "",
    "sandlab._fitting": "",
    "sandlab._memory": "",
    "sandlab.learning._engine.recording": "ea03f146fe5595cf0f9c495db3f15ea005fc8f2df720e4cf9d304e412f69945e",
    "sandlab.models._parts.recurrent_scan": "c81db3055e087d8ca2c421eda9ffb69744ec945d1ea49a6256be574862a07831",
    "sandlab.models._parts.lstm_on_chip": "",
    "sandlab.models._parts.lstm_kernels": "",
    "sandlab.models.hugging_face": "edb07d0feba2fce3823977495ab811aaaed2119c13432cba46c20ebee32c9991",
}
# A model can save itself, and the file that saves also loads, by its name, any model there is. What trains or builds a
# model does not lead there, or else each result would depend on every model; what loads one names `load` itself.
_NOT_FOLLOWED = {("sandlab.models.base", "sandlab.models.io")}
_LIBRARIES = ("site-packages", "dist-packages")
Job: TypeAlias = Callable[..., Any]
_known: dict[str, Job] = {}


def identity(job: Job) -> str:
    """The "module:name" of a job; a lambda or an inner function has no name that another process could find."""
    name = getattr(job, "__qualname__", "")
    if not name or "<" in name:
        raise BadInput(f"a job must be a function at the top of a module, got {job!r}: move it there")
    return f"{_home(job)}:{name}"


def _home(thing: object) -> str:
    """The module of a function or class; in a worker process a script goes by another name."""
    return "__main__" if thing.__module__ == "__mp_main__" else str(thing.__module__)


def code_version(job: Job, config: object = None, *, decorators: bool = True) -> str:
    """Hash of what the job and its config's classes depend on; the same on each machine and under each Python."""
    return _hash(sorted(code_parts(job, config, decorators=decorators).items()))


def code_parts(job: Job, config: object = None, *, decorators: bool = True) -> dict[str, str]:
    """Module → hash of what counts in it, for everything the job and its config's classes depend on.

    decorators   whether what the job's own decorators refer to counts
    """
    if _known.setdefault(identity(job), job) is not job:  # its module was loaded again: so may others have been
        _forget()
        _known[identity(job)] = job
    return _job_parts(_home(job), job.__qualname__, frozenset(_classes(config)), decorators)


def changed_modules(job: Job, config: object, parts: dict[str, str]) -> list[str]:
    """Modules that are loaded here with other sources than `parts` says: edited meanwhile, or another machine's."""
    own = _home(job)
    found = (
        [own] if own in parts and _own_hash(own, job.__qualname__, frozenset(_classes(config))) != parts[own] else []
    )
    for module, expected in parts.items():
        file = _file_of(module) if module != own else None
        if file is not None and _part(module, file) != expected:
            found.append(module)
    return found


def lives_here_only(job: Job, config: object) -> bool:
    """Whether a job or its config's classes are defined in a session without a file, which no other process has."""
    places = {_home(job), *(place for place, _ in _classes(config))}
    return "__main__" in places and _file_of("__main__") is None


def module_version(name: str) -> str:
    """Hash of a module's import closure."""
    file = _file_of(name)
    return _hash(_texts(closure({name: file})) if file is not None else _cells(name))


def _cells(name: str) -> list[tuple[str, str]]:
    """The sources of what a notebook or an interactive session defines."""
    if name not in sys.modules:
        raise BadInput(f"{name} was not loaded from a file, and is no notebook or session either: import it first")
    own = [each for each in vars(sys.modules[name]).values() if getattr(each, "__module__", None) == name]
    functions = [each for each in own if isinstance(each, types.FunctionType)]
    fields = [(each.__qualname__, repr(inspect.get_annotations(each))) for each in own if isinstance(each, type)]
    return sorted([*fields, *((each.__qualname__, _text_of(each)) for each in functions)])


@functools.cache
def package_version() -> str:
    """Hash of all of SandLab's sources."""
    return _hash((str(file.relative_to(PACKAGE)), file.read_text()) for file in sorted(PACKAGE.rglob("*.py")))


def closure(start: dict[str, Path], wanted: Iterable[str] = (), tree: _Tree | None = None) -> dict[str, Path]:
    """Module name → file: the given modules, those behind the `wanted` dotted names, and all that these import."""
    tree = tree or _Tree.of(*next(iter(start.items())))
    found: dict[str, Path] = {}
    waiting = [*start.items(), *(module for name in wanted for module in _behind(tree, name))]
    while waiting:
        module, file = waiting.pop()
        if module not in found:
            found[module] = file
            waiting.extend(_needed(tree, module, file))
    return found


@functools.cache
def _needed(tree: _Tree, module: str, file: Path) -> tuple[tuple[str, Path], ...]:
    """The modules that a file refers to."""
    names = file_references(module, file)
    return tuple({pair for name in names for pair in _behind(tree, name) if (module, pair[0]) not in _NOT_FOLLOWED})


@functools.cache
def _job_parts(module: str, name: str, classes: frozenset[tuple[str, str]], decorators: bool) -> dict[str, str]:
    file = _file_of(module)
    if file is None:
        return {"": _hash([("", _text_of(_known[f"{module}:{name}"]))])}
    elsewhere = {place: path for place, _ in classes if place != module and (path := _file_of(place))}
    wanted = read_source(module, file).references(_own_code(module, name, classes, decorators))
    others = closure(elsewhere, wanted, _Tree.of(module, file))
    others.pop(module, None)
    parts = {each: part for each, path in others.items() if (part := _part(each, path))}
    return {**parts, module: _own_hash(module, name, classes, decorators)}


@functools.cache
def _part(module: str, file: Path) -> str:
    """Hash of a module that a job depends on, as a whole."""
    return _DOOR[module] if module in _DOOR else _hash([(module, file_meaning(module, file))])


def _own_hash(module: str, name: str, classes: frozenset[tuple[str, str]], decorators: bool = True) -> str:
    """Hash of the parts of its own module that a job can reach."""
    file = _file_of(module)
    if file is None:
        return ""
    parts = _own_code(module, name, classes, decorators)
    return _hash([(module, meaning(read_source(module, file).excerpt(parts)))])


def _own_code(module: str, name: str, classes: frozenset[tuple[str, str]], decorators: bool) -> list[ast.stmt]:
    file = _file_of(module)
    here = [owned for place, owned in classes if place == module]
    start = name.partition(".")[0]
    bare = "" if decorators else start
    parts = read_source(module, file).reachable([start, *here], undecorated=bare) if file else []
    return [part for part in parts if not isinstance(part, ast.Import | ast.ImportFrom)]


def _classes(config: object) -> Iterator[tuple[str, str]]:
    """(module, name) of every dataclass and every function inside a config."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        yield _home(type(config)), type(config).__qualname__
        for field in dataclasses.fields(config):
            yield from _classes(getattr(config, field.name))
    elif isinstance(config, (list, tuple)):
        for item in config:
            yield from _classes(item)
    elif isinstance(config, dict):
        yield from _classes(list(config.values()))
    elif isinstance(config, (types.FunctionType, type)):
        yield _home(config), config.__qualname__


@dataclass(frozen=True)
class _Tree:
    """Where modules are looked for: SandLab's package, and the project that a job's own module belongs to."""

    folder: Path
    package: str

    @classmethod
    def of(cls, module: str, file: Path) -> _Tree:
        depth = 0 if module == "__main__" else module.count(".") + (file.name == "__init__.py")
        return cls(file.parents[depth], module.partition(".")[0])

    def modules(self, wanted: str) -> Iterator[tuple[str, Path]]:
        """The modules behind a dotted name, which may end in names that are not modules (classes, functions)."""
        if wanted.endswith(".*"):
            yield from self._below(wanted[:-2])
            return
        parts = wanted.split(".")
        for length in range(len(parts), 0, -1):
            name, rest = ".".join(parts[:length]), parts[length:]
            file = self._file(name)
            if file is None:
                continue
            if file.name == "__init__.py" and rest and name.startswith("sandlab."):
                yield from self._of_room(name, file.parent, rest[0])
            elif name != "sandlab":
                yield name, file
            return

    def _of_room(self, room: str, folder: Path, name: str) -> Iterator[tuple[str, Path]]:
        owner = _owners(folder).get(name)
        if owner is None:
            yield from self._below(room)
        else:
            yield f"{room}.{'.'.join(owner.with_suffix('').parts)}", folder / owner

    def _below(self, package: str) -> Iterator[tuple[str, Path]]:
        init = self._file(package)
        if init is None or init.name != "__init__.py":
            return
        for file in sorted(init.parent.rglob("*.py")):
            inner = file.relative_to(init.parent).with_suffix("").parts
            yield ".".join((package, *inner)).removesuffix(".__init__"), file

    def _file(self, name: str) -> Path | None:
        head, _, tail = name.partition(".")
        if head == "sandlab":
            base = PACKAGE
        elif head == self.package or not any(part in _LIBRARIES for part in self.folder.parts):
            base = self.folder / head
        else:
            return None
        path = base.joinpath(*tail.split(".")) if tail else base
        candidates = (path.with_name(path.name + ".py"), path / "__init__.py")
        return next((candidate for candidate in candidates if candidate.is_file()), None)


@functools.cache
def _behind(tree: _Tree, name: str) -> tuple[tuple[str, Path], ...]:
    return tuple(tree.modules(name))


@functools.cache
def _owners(room: Path) -> dict[str, Path]:
    """Public name → file of a room (as a path inside it), from the `__all__` of its files."""
    owners: dict[str, Path] = {}
    for file in sorted(room.rglob("*.py")):
        for part in read_source(file.stem, file).definitions.get("__all__", []):
            names = [node.value for node in ast.walk(part) if isinstance(node, ast.Constant)]
            owners.update({str(name): file.relative_to(room) for name in names})
    return owners


def _file_of(module: str) -> Path | None:
    path = getattr(sys.modules.get(module), "__file__", None)
    return Path(path).resolve() if path is not None and Path(path).is_file() else None


def _forget() -> None:
    cached = (_job_parts, _needed, _part, _owners, _behind, read_source, file_meaning, file_references, package_version)
    for each in cached:
        each.cache_clear()


def _texts(files: dict[str, Path]) -> list[tuple[str, str]]:
    return [(module, read_source(module, file).text) for module, file in sorted(files.items())]


def _text_of(job: Job) -> str:
    try:
        return inspect.getsource(job)
    except (OSError, TypeError) as problem:
        raise BadInput(f"the source of {job!r} cannot be read: define it in a file or in a notebook") from problem


def _hash(sources: Iterable[tuple[str, str]]) -> str:
    digest = hashlib.sha256()
    for name, text in sources:
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()
