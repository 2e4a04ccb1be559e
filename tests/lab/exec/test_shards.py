"""One experiment on several GPUs: its members see what they see on one, and find the same up to rounding."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import toys
from pretended_gpu import pretended_gpu

import sandlab as sl
from sandlab.lab._exec.cluster import Cluster
from sandlab.lab._exec.executors import Local
from sandlab.lab._exec.jobs import Task
from sandlab.lab._exec.shards import Shard, split, train_shard
from sandlab.lab._store.store import Store
from sandlab.lab.laboratory import Laboratory
from sandlab.learning._engine import loop
from sandlab.learning._engine.scratch import OutOfTime
from sandlab.learning._engine.sources import Source, tensors_of
from sandlab.learning.experiment import Experiment, Members, Runs, Snapshot, Training, join, train_members
from sandlab.learning.objectives import MaskedToken
from sandlab.learning.stopping import EarlyStop
from sandlab.models.transformer import TransformerConfig

SEEDS = (3, 0, 4, 1, 7)


def first_weights(snapshot: Snapshot) -> dict[str, torch.Tensor]:
    """A probe that looks at the weights and at the world."""
    table = next(iter(snapshot.model.stacked.values())).detach().clone()
    return {"first weights": table * snapshot.world.length}


WORLD = sl.worlds.InContextMarkov(states=3, order=1, length=12)
PLAIN = Experiment(
    WORLD,
    TransformerConfig(vocab=4, length=12, layers=1, width=16, heads=2),
    Training(steps=30, batch_size=3, evals=3, eval_examples=15, ema=0.9, schedule="cosine", clip=1.0, lr=3e-3),
    seeds=SEEDS,
)
THEN = replace(PLAIN, then=replace(PLAIN, world=replace(WORLD, length=8), training=replace(PLAIN.training, steps=12)))
MASKED = replace(PLAIN, training=replace(PLAIN.training, objective=MaskedToken(token=3)))
KINDS = {"plain": PLAIN, "a second training": THEN, "an objective that draws": MASKED}


def shards(experiment: Experiment, pieces: int) -> list[Shard]:
    """On the CPU, the seeds as the one group that they are on a GPU."""
    found = [replace(each, device="cpu", weights=True) for each in split(experiment, "cuda", pieces)]
    assert [each.count for each in found] == {2: [2, 3], 3: [1, 2, 2]}[pieces]
    return found


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[list[torch.Tensor]]:
    """The batches that are trained on, one after another."""
    batches: list[list[torch.Tensor]] = []
    draw = Source.draw

    def noted(self: Source, step: int) -> sl.worlds.Batch:
        batch = draw(self, step)
        batches.append(tensors_of(batch))
        return batch

    monkeypatch.setattr(Source, "draw", noted)
    return batches


def same(found: Runs, expected: Runs, within: float = 2e-5) -> None:
    assert found.seeds == expected.seeds
    assert np.array_equal(found.eval_steps, expected.eval_steps)
    assert set(found.metrics) == set(expected.metrics)
    for name, value in {**expected.metrics, "training loss": expected.loss}.items():
        np.testing.assert_allclose({**found.metrics, "training loss": found.loss}[name], value, atol=within)
    assert set(found.weights or {}) == set(expected.weights or {})
    for name, weight in (expected.weights or {}).items():
        torch.testing.assert_close((found.weights or {})[name], weight, atol=within, rtol=0.0)
    if expected.then is not None:
        assert found.then is not None
        same(found.then, expected.then, within)


@pytest.mark.parametrize("pieces", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_shards_draw_the_group_s_data_bit_for_bit_and_learn_the_same(
    kind: str, pieces: int, drawn: list[list[torch.Tensor]]
) -> None:
    experiment = replace(KINDS[kind], probes=(first_weights,))
    whole = train_members(Members(experiment, SEEDS, "cpu", weights=True))
    expected = [list(batch) for batch in drawn]
    parts, seen = [], []
    for shard in shards(experiment, pieces):
        drawn.clear()
        parts.append(train_shard(shard))
        seen.append([list(batch) for batch in drawn])
    for index, batch in enumerate(expected):
        for place, value in enumerate(batch):
            assert torch.equal(torch.cat([each[index][place] for each in seen]), value)
    assert all(len(each) == len(expected) for each in seen)
    same(join(parts), whole)


def test_seeds_as_jobs_of_their_own_learn_something_else() -> None:
    """What shards are for: without them, other seeds would train on other examples."""
    whole = train_members(Members(PLAIN, SEEDS, "cpu", weights=True))
    alone = join([train_members(Members(PLAIN, seeds, "cpu", weights=True)) for seeds in (SEEDS[:2], SEEDS[2:])])
    with pytest.raises(AssertionError):
        same(alone, whole, within=1e-2)


def test_what_notices_its_neighbours_stays_whole() -> None:
    assert split(PLAIN, "cuda", 2)
    assert not split(replace(PLAIN, model=replace(PLAIN.model, dropout=0.1)), "cuda", 2)
    stops = replace(PLAIN.training, stop=EarlyStop("loss", patience=1))
    assert not split(replace(PLAIN, training=stops), "cuda", 2)
    assert not split(replace(PLAIN, then=replace(PLAIN, training=stops)), "cuda", 2)
    assert not split(replace(PLAIN, seeds=1), "cuda", 2)
    assert [each.seeds for each in split(replace(PLAIN, seeds=2), "cuda", 8)] == [(0,), (1,)]


class Gpus(Local):
    """So many GPUs, pretended, one job after another."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.gpus = count
        self.jobs: list[tuple[int, ...]] = []

    def submit(self, task: Task) -> None:
        self.jobs.append(task.config.seeds)
        super().submit(task)


def lab(store: Path, gpus: int) -> tuple[Laboratory, list[tuple[int, ...]]]:
    place = Gpus(gpus)
    return Laboratory(Store.open(store), place, device="cuda"), place.jobs


def test_the_laboratory_splits_seeds_when_there_are_gpus_to_spare(tmp_path: Path) -> None:
    other = replace(PLAIN, model=replace(PLAIN.model, dropout=0.1))
    with pretended_gpu():
        one, jobs = lab(tmp_path / "one", 1)
        expected = one.train([PLAIN, other])
        assert jobs == [SEEDS, SEEDS]
        four, jobs = lab(tmp_path / "four", 4)
        found = four.train([PLAIN, other])
        assert jobs == [SEEDS, SEEDS[:2], SEEDS[2:]]  # dropout in one piece, the others in two
        again, jobs = lab(tmp_path / "four", 4)
        again.train([PLAIN, other])
        assert jobs == [] and again.counts["cached"] == 3
        known, jobs = lab(tmp_path / "one", 4)  # trained as a whole before
        known.train([PLAIN, other])
        assert jobs == []
        few, jobs = lab(tmp_path / "few", 3)  # one GPU for each and half a one over: nothing is gained
        few.train([PLAIN, other])
        assert jobs == [SEEDS, SEEDS]
    for ours, theirs in zip(found, expected):
        same(ours, theirs)


def test_a_shard_that_is_cut_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_gpu():
        whole, _ = lab(tmp_path / "whole", 2)
        expected = whole.train(PLAIN)
        updates = iter(range(10**6))
        monkeypatch.setattr(loop, "out_of_time", lambda: next(updates) in (11, 47))
        cuts = 0
        while True:
            cut, _ = lab(tmp_path / "cut", 2)
            try:
                found = cut.train(PLAIN)
                break
            except OutOfTime:
                cuts += 1
    assert cuts == 2
    same(found, expected, within=0.0)


def on_a_pretended_gpu(job: Shard) -> Runs:
    """What a node does; the log says which GPU Ray lent."""
    import ray

    lent = ",".join(map(str, ray.get_gpu_ids()))
    toys.log(f"{lent} {os.environ.get('CUDA_VISIBLE_DEVICES')} {list(job.seeds)}")
    with pretended_gpu():
        return train_shard(job)


class Pretended(Cluster):
    """A cluster whose GPUs are a number that Ray was told."""

    def submit(self, task: Task) -> None:
        assert task.job is train_shard and task.resources.gpus == 1
        super().submit(replace(task, job=on_a_pretended_gpu, parts={}))


@pytest.mark.cluster
def test_ray_trains_two_shards_on_two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    log = tmp_path / "log"
    monkeypatch.setenv(toys.LOG, str(log))
    ray.init(address="local", num_cpus=2, num_gpus=2, include_dashboard=False, log_to_driver=False)
    try:
        place = Pretended()
        assert place.gpus == 2
        found = Laboratory(Store.open(tmp_path / "store"), place, device="cuda").train(PLAIN, weights=True)
    finally:
        ray.shutdown()
    lent = {line[:3]: line[4:] for line in log.read_text().splitlines()}
    assert set(lent) == {"0 0", "1 1"} and set(lent.values()) == {"[3, 0]", "[4, 1, 7]"}
    same(found, train_members(Members(PLAIN, SEEDS, "cpu", weights=True)))
