"""A training run on disk: one safetensors file whose header holds the rest as JSON. Nothing is pickled.

The file is written beside its place and moved there in one step, so that it is whole at every moment.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from sandlab.errors import BadInput, integer, number

__all__ = ["Checkpoint", "read_checkpoint", "write_checkpoint"]


@dataclass(frozen=True)
class Checkpoint:
    """Save the run to `path` and at its end; a run that finds the file goes on from there.

    every    number of steps from one save to the next; None: only by the clock
    seconds  save also when so many seconds have passed since the last one
    """

    path: str | Path
    every: int | None = 1000
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.every is not None:
            integer("every", self.every, low=1)
        if self.seconds is not None:
            number("seconds", self.seconds, low=0.0)


def write_checkpoint(path: str | Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors and JSON facts atomically."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    whole = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    try:
        save_file(whole, beside, metadata={"sandlab": json.dumps(facts)})
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def read_checkpoint(path: str | Path, device: torch.device) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and facts of a checkpoint; a file that is not one is refused."""
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            facts = json.loads((file.metadata() or {})["sandlab"])
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except (SafetensorError, KeyError, json.JSONDecodeError) as failure:
        raise BadInput(f"{path} is not a checkpoint of a training run ({failure}): delete it to start afresh") from None
