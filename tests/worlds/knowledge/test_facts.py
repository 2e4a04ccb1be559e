"""Fact recall."""

from __future__ import annotations

import math

import pytest
import torch

import sandlab as sl
from sandlab.worlds.base import cross_entropy
from sandlab.worlds.knowledge.facts import FactRecall

SMALL = FactRecall(subjects=8, relations=2, answers=4, noise=10, length=16, facts="structured")


def test_each_sequence_has_one_subject_one_relation_and_an_end() -> None:
    world = FactRecall(subjects=5, relations=3, answers=2, noise=4, length=7)
    tokens = world.sample(400, rng=sl.rng(0)).inputs
    assert ((tokens < 5).sum(1) == 1).all()
    assert (((tokens >= 5) & (tokens < 8)).sum(1) == 1).all()
    assert (tokens[:, -1] == 12).all() and (tokens[:, :-1] < 12).all()


def test_subject_and_relation_stand_anywhere_and_in_either_order() -> None:
    tokens = SMALL.sample(4000, rng=sl.rng(1)).inputs
    subject = (tokens < 8).int().argmax(1)
    relation = ((tokens >= 8) & (tokens < 10)).int().argmax(1)
    assert subject.unique().tolist() == relation.unique().tolist() == list(range(15))
    assert 0.45 < (subject < relation).double().mean() < 0.55


def test_the_answer_is_the_fact_and_the_oracle_knows_it() -> None:
    world = FactRecall(subjects=6, relations=4, answers=3)
    batch = world.sample(200, rng=sl.rng(2))
    read = batch.truth["relation"] * 3 + world.attribute[batch.truth["subject"], batch.truth["relation"]]
    assert torch.equal(read, batch.targets.squeeze(-1))
    assert world.optimal_loss(batch) == 0.0


def test_structured_facts_follow_the_formula() -> None:
    assert SMALL.attribute[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert torch.equal(SMALL.attribute[:, 0], SMALL.attribute[:, 1])


def test_balanced_facts_use_each_attribute_equally_often() -> None:
    world = FactRecall(subjects=16, relations=4, answers=8, facts="balanced")
    assert all(world.attribute[:, r].bincount().tolist() == [2] * 8 for r in range(4))


def test_plateaus_have_the_known_levels() -> None:
    """Without knowledge log DR, with the relation log D: 3.4657 and 2.0794 for D = 8, R = 4."""
    world = FactRecall(subjects=16, relations=4, answers=8, noise=20, facts="structured")
    batch = world.sample(64, rng=sl.rng(3))
    uniform = torch.full((64, 1, 32), -math.log(32))
    assert float(cross_entropy(uniform, batch)) == pytest.approx(3.4657, abs=5e-5)
    assert float(cross_entropy(world.baselines()["relation"](batch), batch)) == pytest.approx(2.0794, abs=5e-5)
    assert float(cross_entropy(world.baselines()["subject"](batch), batch)) == pytest.approx(math.log(4), abs=1e-12)


@pytest.mark.parametrize("bad", [{"length": 2}, {"noise": 0}, {"facts": "no"}, {"answers": 0}])
def test_impossible_worlds_are_refused(bad) -> None:
    with pytest.raises(sl.BadInput):
        FactRecall(**bad)
