"""Experiments: what is trained, as one nested frozen value, and the results of its runs.

    Experiment(
        world=InContextMarkov(states=3, order=2, length=64),
        model=TransformerConfig(vocab=3, length=64, layers=2),
        training=Training(steps=2000, batch_size=128, lr=0.01),
        seeds=12,
    )

`lab.train(experiment)` trains it: each seed has its own weights and its own data, on every device.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from sandlab.errors import BadInput, choice, integer, require
from sandlab.learning._engine.checkpoints import Checkpoint
from sandlab.learning._engine.evaluation import evaluate_batch, prepare_once
from sandlab.learning._engine.precision import PRECISIONS, computing
from sandlab.learning._engine.scratch import scratch_file
from sandlab.learning.history import History
from sandlab.learning.objectives import Objective, as_objective
from sandlab.learning.population import Population
from sandlab.learning.schedules import Schedule
from sandlab.learning.stopping import EarlyStop
from sandlab.learning.training import train
from sandlab.models.base import Config, Model, build
from sandlab.random import rng
from sandlab.worlds.base import Batch, World

__all__ = ["Experiment", "Probe", "Runs", "Snapshot", "Training"]

MOST_AT_ONCE = 256
"""Seeds of one experiment that are trained together on a GPU."""

CHECKPOINT_SECONDS = 20.0
"""Time between two checkpoints of a training inside a job."""


@dataclass(frozen=True)
class Training:
    """How a model is trained.

    steps, batch_size   updates, and fresh examples in each
    optimizer, lr, …    as in `train`, which is given every field; the objective is a name or a frozen dataclass
    schedule            also `ReduceLROnPlateau`, which follows an evaluated metric
    evals               evaluations along the way (besides the one before the first step), on `eval_examples` held-out
                        examples that are the same for all seeds; probes are measured at each of them
    ema                 decay of the average of the weights: a number, or a function of the step such as `PowerDecay`
    keep                name of a metric: `Runs.weights` are those of the evaluation at which it was smallest (the first
                        of equals); "ema/…" is a metric of the averaged weights
    precision           of the matrix products on a GPU: "float32", "tf32" or "bf16"
    nan                 "raise" an error when a loss is not a number, or "continue" with the other seeds
    """

    steps: int
    batch_size: int = 64
    lr: float = 1e-3
    optimizer: str = "adamw"
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    momentum: float = 0.0
    schedule: Schedule = "constant"
    warmup: int = 0
    clip: float | None = None
    ema: float | Callable[[int], float] | None = None
    objective: str | Objective | None = None
    evals: int = 20
    eval_examples: int = 1024
    stop: EarlyStop | None = None
    keep: str | None = None
    precision: str = "float32"
    nan: str = "raise"

    def __post_init__(self) -> None:
        integer("steps", self.steps, low=0)
        integer("batch_size", self.batch_size, low=1)
        integer("evals", self.evals, low=1)
        integer("eval_examples", self.eval_examples, low=1)
        choice("precision", self.precision, PRECISIONS)


@dataclass(frozen=True)
class Snapshot:
    """A population at one moment of its training, as a probe sees it.

    Weights go on changing in place: a probe that returns them returns copies.

    model   all members; `record` and `patch` work on it, the member axis is first
    world   what it is trained on; batch: the held-out examples of every evaluation, as the world gives them
    """

    model: Population[Any]
    world: World
    batch: Batch

    @property
    def device(self) -> torch.device:
        return self.model.device

    def rng(self, seed: int, *stream: str | int) -> torch.Generator:
        """A generator on the model's device: the same draws at every evaluation and for every seed."""
        return rng(seed, *stream, device=self.device)


Probe: TypeAlias = Callable[[Snapshot], Mapping[str, Any]]
"""A named measurement: name → array with the member axis first. A function of a module, or a frozen dataclass."""


@dataclass(frozen=True)
class Experiment:
    """What is trained.

    world, model   frozen dataclasses: the world, and the config of the model
    seeds          how many (0, 1, 2, …), or which: each has its own weights and its own data
    probes         measured at every evaluation, arrays with the member axis first (`Runs.metrics`)
    final          measured once at the end, on the last weights (`Runs.final`)
    prepare        changes a freshly drawn model before it is trained: frozen weights, a special initialisation
    then           what the same members train on next: its world, training and probes count, not its model and seeds
    """

    world: World
    model: Config
    training: Training
    seeds: int | tuple[int, ...] = 1
    probes: tuple[Probe, ...] = ()
    final: tuple[Probe, ...] = ()
    prepare: Callable[[nn.Module], None] | None = None
    then: Experiment | None = None

    def __post_init__(self) -> None:
        require(len(self.seed_list) >= 1, "seeds", self.seeds, "at least one")

    @property
    def seed_list(self) -> tuple[int, ...]:
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


@dataclass(frozen=True)
class Runs:
    """The results of an experiment's seeds; the seed axis is first everywhere.

    eval_steps   numbers of updates after which the members were evaluated (0: before the first)
    loss         training loss of each step (seed, step); NaN after a member stopped early
    metrics      name → evaluations and probes (seed, evaluation, …): "loss", "accuracy", what the probes name
    final        name → what the final probes measured (seed, …)
    parameters   number of parameters of one member
    weights      name → state dicts (seed, …), with `weights=True`: averaged ones where the training averages, those of
                 the best evaluation where it keeps them
    then         the same members' next training, when there is one
    """

    seeds: tuple[int, ...]
    eval_steps: np.ndarray
    loss: np.ndarray
    metrics: dict[str, np.ndarray]
    final: dict[str, Any] = field(default_factory=dict)
    parameters: int = 0
    weights: dict[str, Tensor] | None = None
    then: Runs | None = None

    def __len__(self) -> int:
        return len(self.seeds)

    def model(self, config: Config, index: int) -> nn.Module:
        """The trained model of one seed (needs the weights)."""
        if self.weights is None:
            raise BadInput("these runs hold no weights: train them with `lab.train(experiment, weights=True)`")
        model = build(config)
        model.load_state_dict({name: value[index] for name, value in self.weights.items()})
        return model


@dataclass(frozen=True)
class Members:
    """Some seeds of an experiment on one device: one job."""

    experiment: Experiment
    seeds: tuple[int, ...]
    device: str = "cpu"
    weights: bool = False


def member_groups(experiment: Experiment, device: str) -> list[tuple[int, ...]]:
    """Seeds that are trained together: each alone on a CPU, where jobs share the cores, many at once on a GPU."""
    seeds, size = experiment.seed_list, 1 if device == "cpu" else MOST_AT_ONCE
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]


def train_members(job: Members) -> Runs:
    """Train some seeds of an experiment and measure its probes."""
    experiment = job.experiment

    def member(seed: int) -> Model:
        model = build(experiment.model)
        if experiment.prepare is not None:
            experiment.prepare(model)
        return model

    # A fixed function of model and device: the same job must give the same digits everywhere.
    population = Population(member, seeds=job.seeds, strategy="auto" if len(job.seeds) == 1 else "native")
    if not population.carries_members:
        population.strategy = "sequential" if job.device == "cpu" else "vmap"
    return _train(population.to(job.device), experiment, job, "data")


def join(parts: Sequence[Runs]) -> Runs:
    """The runs of several groups of seeds as one."""
    if len(parts) == 1:
        return parts[0]
    nexts = [part.then for part in parts if part.then is not None]
    kept = [part.weights for part in parts if part.weights is not None]
    return Runs(
        seeds=tuple(seed for part in parts for seed in part.seeds),
        eval_steps=max((part.eval_steps for part in parts), key=len),
        loss=_stack([row for part in parts for row in part.loss]),
        metrics={name: _stack([row for part in parts for row in part.metrics[name]]) for name in parts[0].metrics},
        final=_joined([part.final for part in parts]),
        parameters=parts[0].parameters,
        weights={name: torch.cat([each[name] for each in kept]) for name in kept[0]} if kept else None,
        then=join(nexts) if nexts else None,
    )


def _train(population: Population[Model], experiment: Experiment, job: Members, stream: str) -> Runs:
    how, world = experiment.training, experiment.world
    precision = how.precision if job.device != "cpu" else "float32"
    goal = as_objective(how.objective)
    batch = world.sample(how.eval_examples, rng=rng(1, "held out", device=job.device))
    held_out, snapshot = prepare_once(batch, goal), Snapshot(population, world, batch)

    def measure(model: nn.Module) -> dict[str, Any]:
        return {**evaluate_batch(model, held_out, goal), **_probe(experiment.probes, snapshot)}

    path = scratch_file(stream)
    options = {each.name: getattr(how, each.name) for each in fields(how) if not each.name.startswith("eval")}
    histories = train(
        population,
        world,
        **{**options, "objective": goal, "precision": precision},
        rng=rng(job.seeds[0], stream, device=job.device),
        evaluate=measure,
        every=max(1, how.steps // how.evals),
        checkpoint=None if path is None else Checkpoint(path, every=None, seconds=CHECKPOINT_SECONDS, replace=True),
        data="separate",
    )
    with computing(precision, torch.device(job.device)):
        final = _probe(experiment.final, snapshot)
    weights = _weights(population, histories) if job.weights else None
    then = None if experiment.then is None else _train(population, experiment.then, job, f"{stream} then")
    return Runs(
        seeds=job.seeds,
        eval_steps=histories[0].eval_steps,
        loss=_stack([history.loss for history in histories]),
        metrics={name: np.stack([each.metrics[name] for each in histories]) for name in histories[0].metrics},
        final={name: _array(value) for name, value in final.items()},
        parameters=population.template.parameter_count(),
        weights=weights,
        then=then,
    )


def _probe(probes: Sequence[Probe], snapshot: Snapshot) -> dict[str, Any]:
    """What the probes measure, by name; no two may use one name."""
    found: dict[str, Any] = {}
    for probe in probes:
        measured = probe(snapshot)
        twice = ", ".join(set(found) & set(measured))
        require(not twice, "probes", f"two of {twice}", "measurements of different names")
        found |= measured
    return found


def _weights(population: Population[Model], histories: Sequence[History]) -> dict[str, Tensor]:
    """The members' state dicts, stacked: with the best weights where they are kept, else averaged or last ones."""
    chosen = [history.best or history.averaged or {} for history in histories]
    stacked = {name: torch.stack([each[name] for each in chosen]) for name in chosen[0]}
    return {name: value.cpu() for name, value in population.state(stacked).items()}


def _array(value: object) -> object:
    """Tensors as arrays, also inside dictionaries."""
    if isinstance(value, Tensor):
        return value.detach().cpu().numpy()
    return {name: _array(each) for name, each in value.items()} if isinstance(value, Mapping) else value


def _joined(parts: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Dictionaries of arrays or lists (also nested ones), joined along the seed axis."""
    return {name: _concatenated([part[name] for part in parts]) for name in parts[0]}


def _concatenated(values: Sequence[Any]) -> object:
    if isinstance(values[0], Mapping):
        return _joined(values)
    return np.concatenate(values) if isinstance(values[0], np.ndarray) else list(itertools.chain(*values))


def _stack(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Rows as one array; those cut short by early stopping are filled up with NaN, or with empty words."""
    longest = max(len(row) for row in rows)
    if all(len(row) == longest for row in rows):
        return np.stack(rows)
    filler = "" if rows[0].dtype.kind == "U" else np.nan
    return np.stack([np.concatenate([row, np.full((longest - len(row), *row.shape[1:]), filler)]) for row in rows])
