"""Your own training run: an experiment, kept in the store with its curves, figure and weights."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sandlab import figures
from sandlab.errors import BadInput
from sandlab.lab._exec.jobs import canonical
from sandlab.lab._store.environment import environment
from sandlab.lab._store.files import checksum, refuse_when_full, write_atomic
from sandlab.lab._store.plain import Facts, plain
from sandlab.lab._store.store import Store
from sandlab.learning._engine.scratch import scratch_folder
from sandlab.learning.experiment import Experiment, Members, Runs, train_members
from sandlab.learning.objectives import CrossEntropy, Forward, Objective, as_objective
from sandlab.models.base import Config, Model, build, seeded
from sandlab.random import rng
from sandlab.registry import get, names
from sandlab.worlds.base import World, cross_entropy

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

__all__ = ["TrainedModels", "fit_config", "train_experiment"]


@dataclass(frozen=True)
class TrainedModels:
    """What came out: curves of all seeds, losses on held-out data beside the best possible one, where the files are."""

    path: Path
    runs: Runs = field(repr=False)
    levels: dict[str, float]
    seconds: float

    def as_dict(self) -> Facts:
        """Numbers for a program to read; the loss is that of the first seed."""
        about = {"path": str(self.path), "levels": self.levels, "seconds": self.seconds}
        return {**about, "parameters": self.runs.parameters, "loss": self.runs.loss[0].tolist()}


def train_experiment(
    experiment: Experiment, *, device: str = "cpu", store: str | Path | Store | None = None
) -> TrainedModels:
    """Train an experiment and keep it: weights of every seed, curves, a figure, and losses beside the oracle's."""
    from sandlab.lab.run import check_device

    check_device(device)
    opened = Store.open(store)
    path = opened.folder_for("training")
    with refuse_when_full(path):
        path.mkdir(parents=True)
    start = time.perf_counter()
    try:
        with _checkpoints(opened, experiment, device, path):
            runs = train_members(Members(experiment, experiment.seed_list, device, weights=True))
            levels = {"this model": float(runs.metrics["loss"][:, -1].mean()), **_levels(experiment)}
            result = TrainedModels(path, runs, levels, time.perf_counter() - start)
            _write(result, experiment, device)
    except BaseException:
        with contextlib.suppress(OSError):
            path.rmdir()  # when nothing has been written into it
        raise
    return result


@contextmanager
def _checkpoints(store: Store, experiment: Experiment, device: str, path: Path) -> Iterator[None]:
    """Let the training inside the block keep its state in the store: the same command goes on from there.

    Two such commands at once do not share it: the second keeps its state beside its result.
    """
    key = checksum(json.dumps([canonical(experiment), device], sort_keys=True).encode())
    lock = store.lock(f"training-{key[:16]}")
    alone = lock.acquire()
    folder = store.checkpoints / f"training-{key[:16]}" if alone else path / "checkpoint"
    try:
        with scratch_folder(folder):
            yield
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        lock.release()


def check_fit(world: World, config: Config, objective: str | Objective | None = None) -> None:
    """Refuse a model that cannot be trained on a world, and say which can: one step on two examples tells."""
    problem = _misfit(world, config, objective)
    if not problem:
        return
    own = getattr(config, "module", "")  # of one's own: what others would fit is no help
    if own:
        raise BadInput(problem if own in problem else f"{own} does not fit {type(world).__name__}: {problem}")
    name = type(config).__name__.removesuffix("Config")
    fitting = [each for each in names("models") if each != "own-module" and _fits(world, each, objective)]
    listed = f"models that fit: {', '.join(fitting)}" if fitting else "no model of the laboratory fits"
    raise BadInput(f"{name} does not fit {type(world).__name__} ({problem}): {listed}")


def _misfit(world: World, config: Config, objective: str | Objective | None) -> str:
    """Why two examples cannot be trained on; empty when they can."""
    logits: list[Tensor] = []

    def forward(inputs: Tensor) -> Tensor:
        logits.append(model(inputs))
        return logits[-1]

    try:
        goal = as_objective(objective)
        batch = goal.prepare(world.sample(2, rng=rng(0, "shape")), rng(0, "shape"))
        with seeded(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = build(config)
            if not any(weight.requires_grad for weight in model.parameters()):
                return "it has no parameters to train"
            loss = goal.whole(Forward(forward, model), batch)
        loss.sum().backward()
    except (ArithmeticError, AttributeError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as told:
        reason = (str(told).splitlines() or [type(told).__name__])[0][:160]
        small = isinstance(told, IndexError) and not batch.inputs.is_floating_point()
        return (
            f"{reason}: its tokens go up to {world.vocab - 1}, its length is {batch.inputs.shape[-1]}"
            if small
            else reason
        )
    if loss.shape not in ((), (1,)):
        return f"its loss has the shape {tuple(loss.shape)}"
    return _missing_classes(world, logits[-1]) if isinstance(goal, CrossEntropy) and not batch.soft else ""


def _missing_classes(world: World, logits: Tensor) -> str:
    """Two examples may show the first classes only: whether the model has an output for each class of the world."""
    try:
        classes = world.outputs
    except NotImplementedError:
        return ""
    return "" if logits.shape[-1] >= classes else f"it tells {logits.shape[-1]} classes apart, the world has {classes}"


def _fits(world: World, name: str, objective: str | Objective | None) -> bool:
    try:
        return not _misfit(world, _fitted(world, get("models", name), {}), objective)
    except (BadInput, TypeError):
        return False


def _options(name: str) -> set[str]:
    return {each.name for each in dataclasses.fields(get("models", name).config_class)}


def fit_config(world: World, model: type[Model], options: Mapping[str, object]) -> Config:
    """The config of a model for a world, checked on two examples: see `check_fit`."""
    config = _fitted(world, model, options)
    check_fit(world, config)
    return config


def _fitted(world: World, model: type[Model], options: Mapping[str, object]) -> Config:
    """The config of a model for a world: alphabet, length, classes and readout come from the world unless given."""
    known = {each.name for each in dataclasses.fields(model.config_class)}
    batch = world.sample(2, rng=rng(0, "shape"))
    features = batch.inputs.is_floating_point()
    if features and "vocab" in known:
        fitting = [name for name in names("models") if "vocab" not in _options(name) and _fits(world, name, None)]
        listed = f"models that fit: {', '.join(fitting)}" if fitting else "no model of the laboratory fits"
        raise BadInput(f"{type(world).__name__} gives features, not tokens: {listed}")
    found: dict[str, object] = {"length": batch.inputs.shape[1] if batch.inputs.ndim > 1 else 1}
    if features:
        found |= {"inputs": batch.inputs[0].numel(), "outputs": int(batch.targets.max()) + 1}
    else:
        try:
            found |= {"vocab": world.vocab, "outputs": world.outputs}
        except NotImplementedError as problem:
            raise BadInput(f"{problem}: models of the laboratory cannot be trained on it from here") from None
    if batch.mask.ndim == 2 and batch.mask.shape[1] == 1:
        found["read"] = "last"
    chosen = {**{name: value for name, value in found.items() if name in known}, **options}
    return model.config_class(**chosen)


def _levels(experiment: Experiment) -> dict[str, float]:
    """Losses of the oracle and of the world's named baselines, on the examples the model is evaluated on."""
    world = experiment.world
    batch = world.sample(experiment.training.eval_examples, rng=rng(1, "held out"))
    try:
        best = {"the best possible": world.optimal_loss(batch)}
    except NotImplementedError:
        return {}
    return best | {name: float(cross_entropy(predict(batch), batch)) for name, predict in world.baselines().items()}


def _write(result: TrainedModels, experiment: Experiment, device: str) -> None:
    runs, path = result.runs, result.path
    for index, seed in enumerate(runs.seeds):
        model = runs.model(experiment.model, index)
        assert isinstance(model, Model)
        model.save(path / ("model" if len(runs) == 1 else f"model-{seed}"))
    write_atomic(path / "history.parquet", _history(runs))
    picture = _draw(result, experiment)
    for kind in ("svg", "png"):
        image = io.BytesIO()
        with figures.style():
            picture.savefig(image, format=kind)
        write_atomic(path / f"loss.{kind}", image.getvalue())
    about = {
        "experiment": canonical(experiment),
        "model": dataclasses.asdict(experiment.model),
        "levels": result.levels,
        "parameters": runs.parameters,
        "seconds": result.seconds,
        "environment": environment(device),
    }
    write_atomic(path / "training.json", json.dumps(plain(about), indent=1).encode())


def _history(runs: Runs) -> bytes:
    """Training losses as a Parquet table: step, and one column per seed."""
    columns = {"step": np.arange(runs.loss.shape[1]), **{f"loss {s}": row for s, row in zip(runs.seeds, runs.loss)}}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _draw(result: TrainedModels, experiment: Experiment) -> Figure:
    runs = result.runs
    title = f"{type(experiment.model).__name__.removesuffix('Config')} on {type(experiment.world).__name__}"
    figure, (axis,) = figures.new(title=title)
    for seed, curve in zip(runs.seeds, runs.metrics["loss"]):
        axis.plot(runs.eval_steps, curve, label=f"seed {seed}" if len(runs) <= 6 else None)
    figures.levels(axis, {name: loss for name, loss in result.levels.items() if name != "this model"})
    axis.set(xlabel="training step", ylabel="held-out loss (nats)")
    if len(runs) <= 6:
        axis.legend()
    return figure
