"""A training loop into a checkpoint and back: a resumed run equals an uninterrupted one bit by bit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.learning._engine.checkpoints import Facts, read_checkpoint, write_checkpoint

if TYPE_CHECKING:
    from sandlab.learning._engine.loop import Loop

__all__ = ["restore", "restore_dropout", "save"]


def save(loop: Loop, path: str | Path) -> None:
    """Write everything that the rest of the run depends on."""
    step = loop.step
    names = list(loop.evaluations[0].metrics) if loop.evaluations else []
    stacked = {name: np.stack([each.metrics[name] for each in loop.evaluations]) for name in names}
    words = {name: values.tolist() for name, values in stacked.items() if values.dtype.kind == "U"}
    arrays = {f"metric.{name}": values for name, values in stacked.items() if name not in words}
    for name, tracker in loop.trackers.items():
        arrays |= {f"{name}.best": tracker.best, f"{name}.waited": tracker.waited}
    arrays["eval_steps"] = np.array([each.step for each in loop.evaluations], dtype=np.int64)
    arrays |= {"stopped_at": loop.stopped_at, "factor": loop.factor}
    tensors = step.tensors() | {name: torch.from_numpy(values) for name, values in arrays.items()}
    tensors |= {f"kept.{index}": row for index, row in enumerate(loop.kept)}
    tensors |= {"losses": step.losses[: loop.done], "table": step.table[: loop.done]}
    tensors |= {"generator": loop.source.rng.get_state(), "dropout.cpu": torch.get_rng_state()}
    if step.on_gpu:
        tensors["dropout.cuda"] = torch.cuda.get_rng_state(loop.device)
    write_checkpoint(path, tensors, Facts(loop.done, loop.settings, step.strategy, names, words))


def restore(loop: Loop, path: str | Path) -> bool:
    """Take over a checkpoint of the same run, if there is one."""
    if not Path(path).exists():
        return False
    tensors, facts = read_checkpoint(path, loop.device)
    step, done = loop.step, facts.done
    if facts.settings != loop.settings:
        raise BadInput(f"{path} belongs to a run with other settings: {facts.settings}, not {loop.settings}")
    if done > loop.steps or not torch.equal(tensors["table"], step.table[:done]):
        raise BadInput(f"{path} has done {done} steps of another schedule: take another file or the same schedule")
    step.load(tensors)
    step.strategy, step.losses[:done] = facts.strategy, tensors["losses"]
    for index, row in enumerate(loop.kept):
        row.copy_(tensors[f"kept.{index}"])
    arrays = {name: value.cpu().numpy() for name, value in tensors.items()}
    for name, tracker in loop.trackers.items():
        tracker.best, tracker.waited = arrays[f"{name}.best"], arrays[f"{name}.waited"]
    loop.done, loop.stopped_at, loop.factor = done, arrays["stopped_at"], arrays["factor"]
    step.lr.copy_(torch.from_numpy(loop.lr * loop.factor))
    loop.source.rng.set_state(tensors["generator"].cpu())
    loop.dropout = {name: value.cpu() for name, value in tensors.items() if name.startswith("dropout.")}
    values = {
        name: np.array(facts.words[name]) if name in facts.words else arrays[f"metric.{name}"] for name in facts.metrics
    }
    for index, number in enumerate(arrays["eval_steps"].tolist()):
        loop.note(number, {name: rows[index] for name, rows in values.items()})
    return True


def restore_dropout(states: dict[str, Tensor], device: torch.device) -> None:
    """Set the generators that dropout draws from."""
    if "dropout.cpu" in states:
        torch.set_rng_state(states["dropout.cpu"])
    if "dropout.cuda" in states and device.type == "cuda":
        torch.cuda.set_rng_state(states["dropout.cuda"], device)
