"""A training run on disk: a resumed run equals an uninterrupted one bit by bit.

One safetensors file, whose header holds the rest as JSON; nothing is pickled. It is written under another name, flushed
to the disk and moved in one step, so that it is whole at every moment. It says which run it belongs to, part by part
(`identity.py`), and carries a checksum: a file of another run or with a changed bit is refused.
"""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from sandlab._door import guarded
from sandlab.errors import BadInput, flag, integer, number
from sandlab.files import clear_parts, write_atomic
from sandlab.learning._engine.identity import digest

if TYPE_CHECKING:
    from sandlab.learning._engine.loop import Loop

__all__ = ["Checkpoint", "restore", "save"]


@guarded
@dataclass(frozen=True)
class Checkpoint:
    """Save the run to `path` along the way and at its end; a run that finds the file goes on from there.

    every    number of steps from one save to the next; None: only by the clock
    seconds  save also when this many seconds have passed since the last one
    replace  a file that is damaged or belongs to another run is told and replaced, instead of refused
    """

    path: str | Path
    every: int | None = 1000
    seconds: float | None = None
    replace: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, Path)) or "\0" in str(self.path):
            raise BadInput(f"the checkpoint's path must be the name of a file, got {self.path!r}")
        flag("replace", self.replace)
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
    facts = {"done": loop.done, "identity": loop.identity, "metrics": names, "words": words}
    whole = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    text = json.dumps(facts)
    write_atomic(path, to_bytes(whole, metadata={"sandlab": text, "sha256": digest(whole, text)}))
    clear_parts(path)
    loop.saved = time.monotonic()


def restore(loop: Loop, checkpoint: Checkpoint) -> bool:
    """Go on from a checkpoint of the same run, if there is one; torch's own generators are set, too."""
    path = Path(checkpoint.path)
    if path.is_dir():
        raise BadInput(f"the checkpoint must be a file, got the folder {path}")
    if not path.exists():
        return False
    try:
        tensors, facts = _read(path, loop.device)
        _compare(path, facts["identity"], loop.identity)
        _check_progress(loop, path, tensors, int(facts["done"]))
    except BadInput as problem:
        if not checkpoint.replace:
            raise
        warnings.warn(f"{problem}; it is replaced, the training starts afresh", stacklevel=2)
        return False
    _take(loop, tensors, facts)
    return True


def _compare(path: Path, theirs: dict[str, str], ours: dict[str, str]) -> None:
    """Refuse a checkpoint of another run, and say in which part it is another one."""
    for part in ours:
        if theirs.get(part) != ours[part]:
            raise BadInput(
                f"{path} belongs to another run: its {part} was {theirs.get(part)}, here it is {ours[part]}: take "
                "another file, or delete it to start afresh"
            )


def _check_progress(loop: Loop, path: Path, tensors: dict[str, Tensor], done: int) -> None:
    if done > loop.steps or not torch.equal(tensors["table"], loop.step.table[:done]):
        raise BadInput(f"{path} has done {done} steps of another schedule: take another file or the same schedule")


def _take(loop: Loop, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Put everything where it was when the checkpoint was written."""
    step, done = loop.step, int(facts["done"])
    step.load(tensors)
    step.losses[:done] = tensors["losses"]
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


def _read(path: Path, device: torch.device) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and facts; a file that is not a checkpoint, or no longer the one that was written, is refused."""
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if digest(tensors, about["sandlab"]) != about["sha256"]:
            raise ValueError("its checksum does not match")
        facts = json.loads(about["sandlab"])
        if not (isinstance(facts, dict) and isinstance(facts.get("identity"), dict)):
            raise ValueError("it does not say which run it belongs to")
    except (SafetensorError, KeyError, ValueError, OSError) as failure:
        raise BadInput(f"{path} is not a checkpoint of a training run ({failure}): delete it to start afresh") from None
    return {name: value.to(device) for name, value in tensors.items()}, facts
