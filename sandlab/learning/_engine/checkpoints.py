"""A training run on disk: a resumed run equals an uninterrupted one bit by bit.

One safetensors file, whose header holds the rest as JSON; nothing is pickled. It is written under another name and
moved in one step, so that it is whole at every moment.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from sandlab.errors import BadInput, integer, number

if TYPE_CHECKING:
    from sandlab.learning._engine.loop import Loop

__all__ = ["Checkpoint", "restore", "save"]


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


def save(loop: Loop, path: Path) -> None:
    """Write everything that the rest of the run depends on."""
    step, evaluations = loop.step, loop.evaluations
    names = list(evaluations[0].metrics) if evaluations else []
    metrics = {name: np.stack([each.metrics[name] for each in evaluations]) for name in names}
    words = {name: values.tolist() for name, values in metrics.items() if values.dtype.kind == "U"}
    arrays = {f"metric.{name}": values for name, values in metrics.items() if name not in words}
    for name, tracker in loop.trackers.items():
        arrays |= {f"{name}.best": tracker.best, f"{name}.waited": tracker.waited}
    arrays["eval_steps"] = np.array([each.step for each in evaluations], dtype=np.int64)
    arrays |= {"stopped_at": loop.stopped_at, "factor": loop.factor}
    tensors = step.tensors() | {name: torch.from_numpy(values) for name, values in arrays.items()}
    tensors |= {f"kept.{index}": row for index, row in enumerate(loop.kept)}
    tensors |= {"losses": step.losses[: loop.done], "table": step.table[: loop.done]}
    tensors |= {"generator": loop.source.rng.get_state(), "dropout": torch.get_rng_state()}
    if step.on_gpu:
        tensors["dropout_gpu"] = torch.cuda.get_rng_state(loop.device)
    facts = {"done": loop.done, "settings": loop.settings, "strategy": step.strategy, "metrics": names, "words": words}
    whole = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        save_file(whole, partial, metadata={"sandlab": json.dumps(facts)})
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    loop.saved = time.monotonic()


def restore(loop: Loop, path: Path) -> bool:
    """Go on from a checkpoint of the same run, if there is one; torch's own generators are set, too."""
    if not path.exists():
        return False
    tensors, facts = _read(path, loop.device)
    step, done = loop.step, int(facts["done"])
    if facts["settings"] != loop.settings:
        raise BadInput(f"{path} belongs to a run with other settings: {facts['settings']}, not {loop.settings}")
    if done > loop.steps or not torch.equal(tensors["table"], step.table[:done]):
        raise BadInput(f"{path} has done {done} steps of another schedule: take another file or the same schedule")
    step.load(tensors)
    step.strategy, step.losses[:done] = facts["strategy"], tensors["losses"]
    for index, row in enumerate(loop.kept):
        row.copy_(tensors[f"kept.{index}"])
    arrays = {name: value.cpu().numpy() for name, value in tensors.items()}
    for name, tracker in loop.trackers.items():
        tracker.best, tracker.waited = arrays[f"{name}.best"], arrays[f"{name}.waited"]
    loop.done, loop.stopped_at, loop.factor = done, arrays["stopped_at"], arrays["factor"]
    step.lr.copy_(torch.from_numpy(loop.lr * loop.factor))
    words = {name: np.array(values) for name, values in facts["words"].items()}
    metrics = {name: words[name] if name in words else arrays[f"metric.{name}"] for name in facts["metrics"]}
    for index, evaluated_at in enumerate(arrays["eval_steps"].tolist()):
        loop.note(evaluated_at, {name: values[index] for name, values in metrics.items()})
    loop.source.rng.set_state(tensors["generator"].cpu())
    torch.set_rng_state(tensors["dropout"].cpu())
    if step.on_gpu and "dropout_gpu" in tensors:
        torch.cuda.set_rng_state(tensors["dropout_gpu"].cpu(), loop.device)
    return True


def _read(path: Path, device: torch.device) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and facts; a file that is not a checkpoint is refused."""
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            facts = json.loads((file.metadata() or {})["sandlab"])
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except (SafetensorError, KeyError, json.JSONDecodeError) as failure:
        raise BadInput(f"{path} is not a checkpoint of a training run ({failure}): delete it to start afresh") from None
