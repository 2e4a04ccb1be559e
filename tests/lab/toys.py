"""Small studies whose truth is arithmetic, for tests of the laboratory.

Draw and average.

E[U] = 1/2.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sandlab.errors import integer
from sandlab.figures import new
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOG = "TOY_LOG"


@dataclass(frozen=True)
class Toy:
    """One job: the mean of `size` uniform draws, after a pause; `trouble` says how it misbehaves."""

    seed: int
    size: int = 1000
    pause: float = 0.0
    trouble: str = ""
    bulk: int = 0
    tensors: bool = False
    device: str = "cpu"


def log(line: str) -> None:
    """Append a line to the file named by the environment: one write per computed job."""
    path = os.environ.get(LOG)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def node() -> str:
    """The Ray node this runs on, or nothing."""
    ray = sys.modules.get("ray")
    return f" {ray.get_runtime_context().get_node_id()}" if ray is not None and ray.is_initialized() else ""


def average(config: Toy) -> dict:
    integer("size", config.size, low=1)
    log(f"start {config.seed}{node()}")
    time.sleep(config.pause)
    if config.trouble == "raise" and config.seed == 3:
        raise RuntimeError("the third one breaks")
    if config.trouble == "die once" and config.seed == 3 and not os.path.exists(os.environ["TOY_MARK"]):
        open(os.environ["TOY_MARK"], "w").close()
        os._exit(9)
    if config.trouble == "hold":
        ctypes.PyDLL(None).sleep(40)  # a call in C that keeps the interpreter's lock
    if config.trouble == "print":
        print("a job says hello", flush=True)
        os.write(1, b"so does a library in C\n")
    generator = np.random.default_rng(config.seed)
    draws = generator.random(config.size)
    result: dict = {"mean": float(draws.mean()), "counts": np.histogram(draws, bins=4)[0]}
    result["bulk"] = generator.integers(256, size=config.bulk, dtype=np.uint8)
    if config.tensors:
        import torch  # only here: the fault tests start many processes, and torch takes seconds to load

        result["head"] = torch.from_numpy(draws[:4])
    log(f"done {config.seed}{node()}")
    return result


@dataclass(frozen=True)
class Plan:
    seeds: int = 6
    size: int = 1000
    pause: float = 0.0
    trouble: str = ""
    bulk: int = 0
    tensors: bool = False


study = Study(
    "toy/uniform",
    title="The mean of uniform draws is one half",
    source="Elementary probability",
    quick=Plan(),
    full=Plan(seeds=12, size=100_000),
)


@dataclass(frozen=True)
class Results:
    means: list[float]
    counts: np.ndarray


@study.collect
def collect(settings: Plan, lab: Lab) -> Results:
    jobs = [
        Toy(seed, settings.size, settings.pause, settings.trouble, settings.bulk, settings.tensors, lab.device)
        for seed in range(settings.seeds)
    ]
    found = lab.map(average, jobs, label="averages")
    return Results([each["mean"] for each in found], np.stack([each["counts"] for each in found]))


@study.claim(Mean(equals=0.5, within=0.05), paper="1/2")
def mean(results: Results) -> list[float]:
    """The mean is one half.

    Mean of the draws.
    """
    return results.means


@study.claim(Mean(below=0.1), held=False, note="as it must")
def small(results: Results) -> list[float]:
    """The mean is below 0.1.

    Mean of the draws.
    """
    return results.means


@study.table
def table_of_means(results: Results) -> dict[str, Rows]:
    return {"means": [{"seed": seed, "mean": mean} for seed, mean in enumerate(results.means)]}


@study.figure
def means(results: Results) -> Figure:
    figure, (axis,) = new(title="Means of uniform draws")
    axis.plot(results.means, "o")
    return figure


def threads(config: Toy) -> int:
    """How many threads torch has inside a job."""
    import torch

    return torch.get_num_threads()


def leave(config: Toy) -> int:
    """A job that ends the process it runs in."""
    sys.exit(0)
