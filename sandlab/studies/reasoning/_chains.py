"""Self-training chains as jobs: members of trained runs go on with longer chains that they label themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from sandlab.learning.experiment import Experiment, Runs, Snapshot, member_groups
from sandlab.learning.population import Population
from sandlab.learning.reasoning.self_training import SelfTrainingStage, self_train
from sandlab.lenses.reasoning.answers import LengthAccuracy
from sandlab.models.base import build
from sandlab.random import rng
from sandlab.studies.reasoning._shared import tested_lengths
from sandlab.studies.study import Lab
from sandlab.worlds.reasoning.lego import Lego


@dataclass(frozen=True)
class ChainJob:
    """Some seeds of trained runs, and the stages that follow, one after another."""

    start: Experiment
    stages: tuple[SelfTrainingStage, ...]
    seeds: tuple[int, ...]
    device: str = "cpu"


@dataclass(frozen=True)
class ChainRuns:
    """What the stages did; seed axis first.

    accuracy   (seed, stage, length) all-steps accuracy, stage 0 being the supervised model
    labels     (seed, stage) share of chains with all labels right
    kept       (seed, stage) share of chains kept; kept_right: share of these that are right
    loss       (seed, stage) training loss at the end of the stage
    """

    seeds: tuple[int, ...]
    lengths: tuple[int, ...]
    trained: tuple[int, ...]
    accuracy: np.ndarray
    labels: np.ndarray
    kept: np.ndarray
    kept_right: np.ndarray
    loss: np.ndarray

    def longest(self, level: float = 0.9) -> np.ndarray:
        """(seed, stage): index of the largest tested length with at least this accuracy; −1 where there is none."""
        good = self.accuracy >= level
        return np.where(good.any(-1), good.shape[-1] - 1 - good[..., ::-1].argmax(-1), -1)


def run_chain(job: ChainJob, given: Runs) -> ChainRuns:
    """Load the members, then label and train stage by stage; accuracy is measured after each."""
    population = _members(job, given)
    world = job.start.world
    assert isinstance(world, Lego)
    probe = next(each for each in job.start.final if isinstance(each, LengthAccuracy))
    accuracy, logs = [_accuracy(population, world, probe)], []
    for index, stage in enumerate(job.stages):
        logs.append(self_train(population, world, stage, rng=rng(job.seeds[0], "stage", index, device=job.device)))
        accuracy.append(_accuracy(population, world, probe))
    columns = {
        name: np.stack([getattr(log, name) for log in logs], 1)
        for name in ("label_accuracy", "kept", "kept_accuracy", "loss")
    }
    return ChainRuns(
        job.seeds,
        probe.lengths,
        (world.length, *(stage.length for stage in job.stages)),
        np.stack(accuracy, 1),
        columns["label_accuracy"],
        columns["kept"],
        columns["kept_accuracy"],
        columns["loss"],
    )


def _members(job: ChainJob, given: Runs) -> Population[Any]:
    config = job.start.model
    population = Population(lambda seed: build(config), seeds=job.seeds, strategy="native")
    for index in range(len(job.seeds)):
        population.set_member(index, given.model(config, index))
    return population.to(job.device)


def _accuracy(population: Population[Any], world: Lego, probe: LengthAccuracy) -> np.ndarray:
    batch = world.sample(1, rng=rng(0, device=population.device))
    found = probe(Snapshot(population, world, batch))["all steps"]
    assert isinstance(found, torch.Tensor)
    return found.cpu().numpy()


def train_chains(lab: Lab, start: Experiment, chains: dict[str, tuple[SelfTrainingStage, ...]]) -> dict[str, ChainRuns]:
    """Every chain of stages from the same trained members; seeds are split as in `lab.train`."""
    runs = lab.train(start, label="supervised runs", weights=True)
    groups = member_groups(start, lab.device)
    jobs = [ChainJob(start, stages, seeds, lab.device) for stages in chains.values() for seeds in groups]
    given = [part for _ in chains for part in _split(runs, groups)]
    found = iter(lab.map(run_chain, jobs, given=given, label="self-training"))
    assert tested_lengths(start)
    return {name: _joined([next(found) for _ in groups]) for name in chains}


def _split(runs: Runs, groups: list[tuple[int, ...]]) -> Iterator[Runs]:
    """The runs of each group of seeds."""
    assert runs.weights is not None
    begin = 0
    for seeds in groups:
        rows = slice(begin, begin + len(seeds))
        yield replace(runs, seeds=seeds, weights={name: value[rows] for name, value in runs.weights.items()})
        begin += len(seeds)


def _joined(parts: list[ChainRuns]) -> ChainRuns:
    names = ("accuracy", "labels", "kept", "kept_right", "loss")
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return replace(parts[0], seeds=tuple(seed for part in parts for seed in part.seeds), **arrays)
