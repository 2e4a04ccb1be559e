"""One's own training run: a model on a world, kept in the store with its history, figure and weights."""

from __future__ import annotations

import dataclasses
import io
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sandlab.errors import BadInput, integer, number
from sandlab.lab._exec.jobs import canonical
from sandlab.lab._store.environment import environment
from sandlab.lab._store.files import refuse_when_full, write_atomic
from sandlab.lab._store.store import Store, plain

__all__ = ["Plan", "Training", "train_model"]


@dataclass(frozen=True)
class Plan:
    """How to train: what `sandlab train --set` may change besides the world and the model."""

    steps: int = 1000
    batch_size: int = 64
    lr: float = 1e-3
    weight_decay: float = 0.0
    optimizer: str = "adamw"
    schedule: str = "constant"
    warmup: int = 0
    clip: float | None = None
    seed: int = 0
    held_out: int = 512
    device: str = "cpu"

    def __post_init__(self) -> None:
        integer("steps", self.steps, low=1)
        integer("held_out", self.held_out, low=1)
        integer("seed", self.seed, low=0)
        number("lr", self.lr, low=0)


@dataclass(frozen=True)
class Training:
    """What came out: the training loss, losses on held-out data beside the best possible one, where the files are."""

    path: Path
    loss: np.ndarray = field(repr=False)
    levels: dict[str, float]
    parameters: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "path": str(self.path), "loss": self.loss.tolist()}


def train_model(world: Any, network: Any, options: dict[str, Any], plan: Plan, store: Any = None) -> Training:
    """Train a model of class `network` on `world`; alphabet, length and classes come from the world."""
    from sandlab.learning.training import train
    from sandlab.models.base import seeded
    from sandlab.random import rng

    if plan.device != "cpu":
        from sandlab.lab.run import check_device

        check_device(plan.device)
    held_out = world.sample(plan.held_out, rng=rng(plan.seed, "held out", device=plan.device))
    options = {**_from_world(world, network, held_out), **options}
    with seeded(plan.seed):
        model = network(**options).to(plan.device)
    start = time.perf_counter()
    chosen = ("steps", "batch_size", "lr", "weight_decay", "optimizer", "schedule", "warmup", "clip")
    how = {name: getattr(plan, name) for name in chosen}
    history = train(model, world, rng=rng(plan.seed, "data", device=plan.device), evaluate=held_out, **how)
    levels = _levels(world, held_out, history)
    path = Store.open(store).folder_for("training")
    result = Training(path, history.loss, levels, model.parameter_count(), time.perf_counter() - start)
    _write(result, model, world, options, plan, history)
    return result


def _from_world(world: Any, network: Any, batch: Any) -> dict[str, Any]:
    """What the world decides about a model: alphabet, length, number of classes, where the answer is read."""
    known = {each.name for each in dataclasses.fields(network.config_class)}
    if batch.inputs.is_floating_point() and "vocab" in known:
        raise BadInput(f"{type(world).__name__} gives features, not tokens: choose a model without a vocabulary")
    found: dict[str, Any] = {"length": batch.inputs.shape[1] if batch.inputs.ndim > 1 else 1}
    if not batch.inputs.is_floating_point():
        found |= {"vocab": world.vocab, "outputs": world.outputs}
    else:
        found |= {"inputs": batch.inputs[0].numel(), "outputs": int(batch.targets.max()) + 1}
    if batch.mask.ndim == 2 and batch.mask.shape[1] == 1:
        found["read"] = "last"
    return {name: value for name, value in found.items() if name in known}


def _levels(world: Any, batch: Any, history: Any) -> dict[str, float]:
    """The model's loss, the oracle's, and those of the world's named baselines, on the same examples."""
    from sandlab.worlds.base import cross_entropy

    levels = {"this model": float(history.final.get("loss", np.nan))}
    try:
        levels["the best possible"] = world.optimal_loss(batch)
    except NotImplementedError:
        return levels
    return levels | {name: float(cross_entropy(law(batch), batch)) for name, law in world.baselines().items()}


def _write(result: Training, model: Any, world: Any, options: dict[str, Any], plan: Plan, history: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sandlab.figures import style

    with refuse_when_full(result.path):
        result.path.mkdir(parents=True)
        model.save(result.path / "model")
    sink = io.BytesIO()
    pq.write_table(pa.table({"step": history.steps, "loss": history.loss}), sink)
    write_atomic(result.path / "history.parquet", sink.getvalue())
    lines = {name: value for name, value in result.levels.items() if name != "this model"}
    figure = history.plot(levels=lines, title=f"{type(model).__name__} on {type(world).__name__}")
    for kind in ("svg", "png"):
        picture = io.BytesIO()
        with style():
            figure.savefig(picture, format=kind)
        write_atomic(result.path / f"loss.{kind}", picture.getvalue())
    about = {
        "world": canonical(world),
        "model": type(model).__name__,
        "options": options,
        "plan": dataclasses.asdict(plan),
        "levels": result.levels,
        "parameters": result.parameters,
        "seconds": result.seconds,
        "environment": environment(plan.device),
    }
    write_atomic(result.path / "training.json", json.dumps(plain(about), indent=1).encode())
