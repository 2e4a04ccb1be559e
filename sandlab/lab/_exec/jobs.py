"""A job: a pure function from a frozen config to a result, with a key that says which result it is."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import numpy as np

from sandlab.errors import BadInput, number
from sandlab.lab._exec.sources import Job, changed_modules, code_parts, code_version, identity
from sandlab.lab._store.codec import Payload, encode
from sandlab.lab._store.files import checksum
from sandlab.lab._store.plain import Json
from sandlab.learning._engine.scratch import OutOfTime, scratch_folder

__all__ = [
    "Done",
    "Failed",
    "JobFailed",
    "Resources",
    "Task",
    "canonical",
    "execute",
    "execute_elsewhere",
    "library_versions",
    "task",
    "tasks_of",
]


class JobFailed(RuntimeError):
    """A job raised an error: the message names the job and its config."""


@dataclass(frozen=True)
class Resources:
    """What a job asks of the machine: CPU cores (its torch threads), GPUs (a share is allowed), bytes of memory.

    A job says so with the decorator `sandlab.studies.resources`.
    """

    cpus: float = 1
    gpus: float = 0
    memory: float = 0

    @classmethod
    def of(cls, job: Job, config: object) -> Resources:
        """What the job says; otherwise one core, and one GPU when its config names a CUDA device."""
        asked = dict(getattr(job, "resources", {}))
        on_gpu = str(getattr(config, "device", "cpu")).startswith("cuda")
        asked.setdefault("gpus", 1 if on_gpu else 0)
        name_of_job = getattr(job, "__qualname__", repr(job))
        unknown = set(asked) - {field.name for field in dataclasses.fields(cls)}
        if unknown:
            raise BadInput(f"{name_of_job} needs {sorted(unknown)}: a job may need cpus, gpus and memory")
        for name, value in asked.items():
            number(f"resources[{name!r}] of {name_of_job}", value, low=0)
        return cls(**asked) if on_gpu else dataclasses.replace(cls(**asked), gpus=0)


@functools.cache
def library_versions() -> dict[str, str]:
    """Versions of what computes: results of two versions are two results."""
    return {name: metadata.version(name) for name in ("torch", "numpy")}


@dataclass(frozen=True)
class Task:
    """A job with its config, the key of its result, and the sources it depends on (module → hash).

    scratch   folder in which trainings inside the job keep their checkpoints ("": nowhere)
    seconds   time after which these trainings save themselves and end (None: as long as they need)
    given     further arguments of the job, which the config determines: they are no part of the key
    """

    key: str
    job: Job
    config: object
    code: str
    resources: Resources
    scratch: str = ""
    seconds: float | None = None
    parts: dict[str, str] = field(repr=False, compare=False, default_factory=dict)
    given: tuple[object, ...] = field(repr=False, compare=False, default=())
    libraries: dict[str, str] = field(repr=False, compare=False, default_factory=lambda: library_versions())

    def __str__(self) -> str:
        return f"{identity(self.job)}({self.config!r})"


@dataclass(frozen=True)
class Done:
    """A result, encoded, and the seconds it took."""

    payload: Payload
    seconds: float


@dataclass(frozen=True)
class Failed:
    """Why there is no result. `transient`: the machine failed, not the job, so that another try may succeed."""

    kind: str
    message: str
    trace: str = ""
    transient: bool = False

    @property
    def unfinished(self) -> bool:
        """Whether the job stopped because its time was over, to go on later."""
        return self.kind == OutOfTime.__name__

    def error(self, task: Task) -> Exception:
        """The exception to raise to the user."""
        if self.kind == "BadInput":
            place = str(task)
            return BadInput(f"{self.message} (in {place if len(place) <= 160 else f'{place[:160]}…'})")
        where = f"\n{self.trace}" if self.trace else ""
        return JobFailed(f"{task} failed: {self.kind}: {self.message}{where}")


def task(job: Job, config: object, scratch: Path | None = None, given: tuple[object, ...] = ()) -> Task:
    """The task of a job and a config; key = hash of the job's name, the config, the code's version and libraries'."""
    code, parts = code_version(job, config), code_parts(job, config)
    what = {"job": identity(job), "config": canonical(config), "code": code, "libraries": library_versions()}
    key = checksum(json.dumps(what, sort_keys=True).encode())
    folder = "" if scratch is None else str(scratch / key)
    return Task(key, job, config, code, Resources.of(job, config), folder, None, parts, given)


def tasks_of(
    job: Job, configs: Iterable[object], given: Iterable[object] | None = None, scratch: Path | None = None
) -> list[Task]:
    """The task of each config, with the value `given` to it as the job's second argument, if there are such values."""
    listed = list(configs)
    arguments = [()] * len(listed) if given is None else [(value,) for value in given]
    if len(arguments) != len(listed):
        raise BadInput(f"{identity(job)} is given {len(arguments)} values for {len(listed)} configs: one each")
    return [task(job, config, scratch, values) for config, values in zip(listed, arguments)]


def canonical(config: object, place: str = "config") -> Json:
    """A config as plain JSON values: a dataclass is its type's name and its fields."""
    if config is None or isinstance(config, (bool, int, float, str)):
        return config
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config) if field.init}
        return {
            "type": f"{type(config).__module__}:{type(config).__qualname__}",
            "fields": {name: canonical(value, f"{place}.{name}") for name, value in fields.items()},
        }
    if isinstance(config, (list, tuple)):
        return [canonical(item, f"{place}[{index}]") for index, item in enumerate(config)]
    if isinstance(config, dict) and all(isinstance(key, str) for key in config):
        return {key: canonical(value, f"{place}[{key!r}]") for key, value in config.items()}
    if callable(config) and not isinstance(config, type):
        return {"function": identity(config)}
    if isinstance(config, np.generic):
        return config.item()
    raise BadInput(
        f"{place} is a {type(config).__name__}: a job's config holds numbers, strings, None, tuples, dataclasses and "
        "functions of modules"
    )


def execute(task: Task) -> Done | Failed:
    """Run a job here. An error becomes a value, so that it travels between processes."""
    start = time.perf_counter()
    try:
        folder = Path(task.scratch) if task.scratch else None
        with _threads(max(1, int(task.resources.cpus))), scratch_folder(folder, task.seconds):
            payload = encode(task.job(task.config, *task.given))
    except (Exception, SystemExit) as problem:  # a job that calls sys.exit has no result
        transient = isinstance(problem, (MemoryError, ConnectionError)) or type(problem).__name__ == "OutOfMemoryError"
        return Failed(type(problem).__name__, str(problem), traceback.format_exc(), transient)
    return Done(payload, time.perf_counter() - start)


def execute_elsewhere(task: Task) -> Done | Failed:
    """Run a job in another process or on another machine, provided that the code is the one its key speaks of."""
    if library_versions() != task.libraries:
        begun, here = (", ".join(f"{n} {v}" for n, v in each.items()) for each in (task.libraries, library_versions()))
        return Failed("LibrariesDiffer", f"{_place()} has {here}, the study began with {begun}: install the same there")
    others = changed_modules(task.job, task.config, task.parts)
    if others:
        listed = f"{', '.join(others[:4])}{' …' if len(others) > 4 else ''}"
        advice = "if a file was edited meanwhile, give the same command again; if not, install the same sources there"
        return Failed("SourcesDiffer", f"{listed} on {_place()} is not what it was when the study began: {advice}")
    return execute(task)


def _place() -> str:
    """The machine this runs on, in words."""
    return f"the node {platform.node()}"


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Sums are split over threads: the same number of them everywhere gives the same digits everywhere."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(count)  # for a torch that the job itself loads
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else count
    if torch:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        os.environ.pop("OMP_NUM_THREADS") if before is None else os.environ.update(OMP_NUM_THREADS=before)
        if torch:
            torch.set_num_threads(threads)
