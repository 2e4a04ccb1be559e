"""Tables of associations."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.worlds.knowledge.associations import Associations


def test_a_bijection_uses_every_answer_once() -> None:
    world = Associations(items=40)
    assert sorted(world.answer.tolist()) == list(range(40))
    assert world.answer.tolist() != list(range(40))


def test_an_injection_repeats_no_answer_and_a_map_may() -> None:
    assert len(set(Associations(10, 30, "injection").answer.tolist())) == 10
    assert Associations(200, 3, "map").answer.unique().tolist() == [0, 1, 2]


def test_another_seed_is_another_table() -> None:
    assert not torch.equal(Associations(40, table_seed=1).answer, Associations(40, table_seed=2).answer)


def test_everything_goes_through_the_items_in_order() -> None:
    batch = Associations(items=5, everything=True).sample(12, rng=sl.rng(0))
    assert batch.inputs.flatten().tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]


def test_the_oracle_is_always_right() -> None:
    world = Associations(items=9, answers=4, table="map")
    batch = world.sample(64, rng=sl.rng(1))
    assert world.optimal_loss(batch) == 0.0
    assert torch.equal(world.oracle(batch).argmax(-1), batch.targets)


@pytest.mark.parametrize("bad", [{"items": 0}, {"items": 4, "answers": 3}, {"table": "bijektion"}])
def test_impossible_tables_are_refused(bad) -> None:
    with pytest.raises(sl.BadInput):
        Associations(**bad)
