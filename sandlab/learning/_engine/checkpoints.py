"""A training run on disk: one safetensors file whose header holds the rest as JSON. Nothing is pickled.

The file is written under another name and moved in one step, so that it is whole at every moment.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from sandlab.errors import BadInput, integer, number

__all__ = ["Checkpoint", "Facts", "read_checkpoint", "write_checkpoint"]


@dataclass(frozen=True)
class Checkpoint:
    """Save the run to `path` along the way and at its end; a run that finds the file goes on from there.

    every    number of steps from one save to the next; None: only by the clock
    seconds  save also when this many seconds have passed since the last one
    """

    path: str | Path
    every: int | None = 1000
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.every is not None:
            integer("every", self.every, low=1)
        if self.seconds is not None:
            number("seconds", self.seconds, low=0.0)

    def due(self, done: int, saved: float) -> bool:
        """Whether to save after `done` updates, the last save having been at time `saved`."""
        by_clock = self.seconds is not None and time.monotonic() - saved >= self.seconds
        return by_clock or (self.every is not None and done % self.every == 0)


@dataclass(frozen=True)
class Facts:
    """What a checkpoint holds besides tensors.

    done       updates done; settings: what a run must share with this one to go on from here
    strategy   how the members of a population are computed
    metrics    names of the metrics; words: the values of those that are text
    """

    done: int
    settings: str
    strategy: str
    metrics: list[str]
    words: dict[str, list[object]]


def write_checkpoint(path: str | Path, tensors: dict[str, Tensor], facts: Facts) -> None:
    """Write tensors and facts atomically."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    whole = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    try:
        save_file(whole, partial, metadata={"sandlab": json.dumps(asdict(facts))})
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_checkpoint(path: str | Path, device: torch.device) -> tuple[dict[str, Tensor], Facts]:
    """Tensors and facts of a checkpoint; a file that is not one is refused."""
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            facts = Facts(**json.loads((file.metadata() or {})["sandlab"]))
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as failure:
        raise BadInput(f"{path} is not a checkpoint of a training run ({failure}): delete it to start afresh") from None
