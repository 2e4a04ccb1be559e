"""The seeds of one experiment on several GPUs, with the findings of one GPU.

On one GPU the seeds of an experiment are one group: a single generator draws the examples of all of them. A shard
trains some members of the group. It draws, step by step, the batch of the whole group, has it prepared by the
objective, and keeps the rows of its own members, so that every member sees the examples that it would see beside all
others; curves agree up to the rounding of sums. What cannot be divided in this way stays in one piece: models that draw
numbers of their own while they are trained (dropout), and trainings that stop early, whose members are measured until
the last one stops.

`train_shard` does what `sandlab.learning.experiment.train_members` does for a whole group.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sandlab.learning._engine.checkpoints import Checkpoint
from sandlab.learning._engine.evaluation import evaluate_batch, prepare_once
from sandlab.learning._engine.precision import computing
from sandlab.learning._engine.scratch import scratch_file
from sandlab.learning.experiment import (
    CHECKPOINT_SECONDS,
    Experiment,
    Runs,
    Snapshot,
    _array,
    _probe,
    _stack,
    _weights,
    member_groups,
)
from sandlab.learning.objectives import Forward, Objective, as_objective
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.models.base import Model, build, seeded
from sandlab.random import rng
from sandlab.worlds.base import Batch, World

__all__ = ["Shard", "split", "train_shard"]


@dataclass(frozen=True)
class Shard:
    """Some members of a group of seeds, on a device of their own: one job.

    group         the seeds that one GPU would train together
    first, count  which of them this shard trains
    """

    experiment: Experiment
    group: tuple[int, ...]
    first: int
    count: int
    device: str
    weights: bool = False

    @property
    def seeds(self) -> tuple[int, ...]:
        return self.group[self.first : self.first + self.count]


def split(experiment: Experiment, device: str, pieces: int, weights: bool = False) -> list[Shard]:
    """The groups of an experiment in so many pieces each (never less than one seed); empty when it must stay whole."""
    if pieces < 2 or len(experiment.seed_list) < 2 or not _divisible(experiment):
        return []
    found = []
    for group in member_groups(experiment, device):
        count = min(pieces, len(group))
        bounds = itertools.pairwise(len(group) * index // count for index in range(count + 1))
        found += [Shard(experiment, group, start, end - start, device, weights) for start, end in bounds]
    return found


def train_shard(job: Shard) -> Runs:
    """Train some members of a group on the examples that they would see in it, and measure the probes."""
    experiment = job.experiment

    def member(seed: int) -> Model:
        model = build(experiment.model)
        if experiment.prepare is not None:
            experiment.prepare(model)
        return model

    population = Population(member, seeds=job.seeds, strategy="native")
    if not population.carries_members:
        population.strategy = "sequential" if job.device == "cpu" else "vmap"
    return _train(population.to(job.device), experiment, job, "data")


@dataclass(frozen=True)
class _Drawn(World):
    """What some members of a group are trained on: rows of the group's batch, which `goal` has prepared already."""

    world: World
    goal: Objective
    members: int
    first: int
    count: int

    def at(self, step: int) -> World:
        now = self.world.at(step)
        return self if now is self.world else replace(self, world=now)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        each = max(1, n // self.count)
        batch = self.goal.prepare(self.world.sample(each * self.members, rng=rng), rng)
        return batch[self.first * each : (self.first + self.count) * each]


@dataclass(frozen=True)
class _AsDrawn(Objective):
    """An objective whose batches come prepared."""

    goal: Objective

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        return self.goal(logits, batch)

    def whole(self, forward: Forward, batch: Batch) -> Tensor:
        return self.goal.whole(forward, batch)

    @property
    def steady(self) -> bool:
        return self.goal.steady

    @property
    def reads_activations(self) -> bool:
        return self.goal.reads_activations


def _train(population: Population[Model], experiment: Experiment, job: Shard, stream: str) -> Runs:
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
        _Drawn(world, goal, len(job.group), job.first, job.count),
        **{**options, "objective": _AsDrawn(goal), "precision": precision},
        rng=rng(job.group[0], stream, device=job.device),
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


def _divisible(experiment: Experiment) -> bool:
    """Whether no member notices how many others are trained beside it, in this training and in those that follow."""
    alone = experiment.training.stop is None and not _draws(experiment)
    return alone and (experiment.then is None or _divisible(replace(experiment.then, model=experiment.model)))


def _draws(experiment: Experiment) -> bool:
    """Whether a pass through the model draws from torch's own generator: one pass on two examples tells."""
    goal, world = as_objective(experiment.training.objective), experiment.world.at(0)
    with seeded(0):
        model = build(experiment.model).train()
        batch = goal.prepare(world.sample(2, rng=rng(0)), rng(0))
    with seeded(0):
        untouched = float(torch.rand(()))
    with seeded(0):
        goal.whole(Forward(model, model), batch)
        return float(torch.rand(())) != untouched
