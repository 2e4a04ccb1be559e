"""Recall tasks: the answers agree with a direct search."""

from __future__ import annotations

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.worlds.recall import AssociativeRecall, CopyString, InductionTask, KHopInduction, NeedleRetrieval

TASKS = [
    InductionTask(states=5, length=9),
    InductionTask(states=2, length=3),
    KHopInduction(states=3, hops=1, length=12),
    KHopInduction(states=3, hops=3, length=20),
    CopyString(states=4, size=6),
    CopyString(states=8, size=6, distinct=True),
    AssociativeRecall(keys=6, values=3, pairs=4, queries=3),
    AssociativeRecall(keys=4, values=3, pairs=4, queries=7),
    NeedleRetrieval(states=3, size=7),
]


@pytest.mark.parametrize("world", TASKS, ids=repr)
def test_the_oracle_is_certain_and_right(world):
    batch = world.sample(300, rng=rng(0))
    assert batch.inputs.shape == (300, world.length)
    assert int(batch.inputs.max()) < world.vocab and int(batch.targets.max()) < world.outputs
    assert world.optimal_loss(batch) == 0.0
    assert torch.equal(world.oracle(batch).argmax(-1), batch.targets)


def test_the_last_token_of_an_induction_task_occurs_once_before():
    batch = InductionTask(states=4, length=10).sample(2000, rng=rng(1))
    for tokens, answer, position in zip(
        batch.inputs.tolist(), batch.targets[:, 0].tolist(), batch.truth["position"].tolist()
    ):
        positions = [index for index, token in enumerate(tokens) if token == tokens[-1]]
        assert positions == [position, 9]
        assert answer == tokens[position + 1]
    assert set(batch.truth["position"].tolist()) == set(range(8))
    assert torch.bincount(batch.inputs[:, -1]).min() > 400


@pytest.mark.parametrize("hops", [1, 2, 4])
def test_hops_follow_the_definition(hops):
    world = KHopInduction(states=3, hops=hops, length=25)
    batch = world.sample(60, rng=rng(2))

    def find(tokens: list[int], i: int) -> int | None:
        found = [j for j in range(1, i + 1) if tokens[j - 1] == tokens[i]]
        return max(found) if found else None

    for tokens, answers in zip(batch.inputs.tolist(), batch.targets.tolist()):
        for i, answer in enumerate(answers):
            at: int | None = i
            for _ in range(hops):
                at = None if at is None else find(tokens, at)
            assert answer == (3 if at is None else tokens[at])


def test_copying_asks_for_the_string_after_the_separator():
    batch = CopyString(states=5, size=4).sample(50, rng=rng(0))
    assert torch.equal(batch.inputs[:, :4], batch.targets)
    assert bool((batch.inputs[:, 4] == 5).all())
    assert torch.equal(batch.inputs[:, 5:], batch.targets[:, :-1])
    distinct = CopyString(states=6, size=6, distinct=True).sample(50, rng=rng(0)).inputs[:, :6]
    assert torch.equal(distinct.sort(-1).values, torch.arange(6).expand(50, -1))


def test_recall_pairs_have_distinct_keys_and_queries_ask_for_them():
    world = AssociativeRecall(keys=7, values=4, pairs=5, queries=3)
    batch = world.sample(200, rng=rng(3))
    keys, values, queries = batch.inputs[:, 0:10:2], batch.inputs[:, 1:10:2], batch.inputs[:, 10:]
    assert int(keys.max()) < 7 <= int(values.min())
    for row in range(200):
        table = dict(zip(keys[row].tolist(), values[row].tolist()))
        assert len(table) == 5 and len(set(queries[row].tolist())) == 3
        assert [table[key] for key in queries[row].tolist()] == batch.targets[row].tolist()


def test_the_needle_is_the_token_at_the_given_index():
    batch = NeedleRetrieval(states=2, size=9).sample(100, rng=rng(4))
    for tokens, answer in zip(batch.inputs.tolist(), batch.targets[:, 0].tolist()):
        assert tokens[tokens[-1] - 2] == answer


@pytest.mark.parametrize(
    "make",
    [
        lambda: InductionTask(length=2),
        lambda: KHopInduction(hops=0),
        lambda: CopyString(states=3, size=4, distinct=True),
        lambda: AssociativeRecall(keys=3, pairs=4),
        lambda: NeedleRetrieval(size=0),
    ],
)
def test_impossible_tasks_are_refused(make):
    with pytest.raises(BadInput):
        make()
