"""Mixtures: every row is a sequence of its part."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.worlds.automata.counters import Cyclic
from sandlab.worlds.expressivity.mixture import Mixture
from sandlab.worlds.expressivity.regression import InContextRegression
from sandlab.worlds.recall import AssociativeRecall, InductionTask

PARTS = (Cyclic(size=2, length=10), InductionTask(states=5, length=8), AssociativeRecall(4, 4, 3, 2))


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("task_token", [False, True])
def test_rows_follow_their_part_and_the_oracle_is_right(disjoint: bool, task_token: bool) -> None:
    world = Mixture(PARTS, task_token=task_token, disjoint=disjoint)
    batch = world.sample(300, rng=sl.rng(0))
    assert batch.inputs.shape == (300, world.length) and int(batch.inputs.max()) < world.vocab
    assert world.optimal_loss(batch) == 0.0
    assert batch.truth["part"].unique().tolist() == [0, 1, 2]


def test_the_first_token_names_the_part() -> None:
    world = Mixture(PARTS)
    batch = world.sample(200, rng=sl.rng(1))
    assert torch.equal(batch.inputs[:, 0] - world.shared, batch.truth["part"])


def test_weights_say_how_often_a_part_is_drawn() -> None:
    part = Mixture(PARTS, weights=(3.0, 1.0, 0.0)).sample(4000, rng=sl.rng(2)).truth["part"]
    assert 0.72 < float((part == 0).double().mean()) < 0.78 and int(part.max()) == 1
    assert Mixture(PARTS).part(2).sample(50, rng=sl.rng(3)).truth["part"].unique().tolist() == [2]


def test_disjoint_parts_share_no_token() -> None:
    world = Mixture(PARTS, disjoint=True)
    batch = world.sample(500, rng=sl.rng(4))
    second = batch.inputs[batch.truth["part"] == 1, 1:9]
    assert int(second.min()) >= 2 and int(second.max()) < 7
    assert world.outputs == 2 + 5 + 8


@pytest.mark.parametrize("bad", [{"parts": ()}, {"weights": (1.0,)}, {"weights": (0.0, 0.0)}])
def test_impossible_mixtures_are_refused(bad) -> None:
    with pytest.raises(BadInput):
        Mixture(**bad)


def test_worlds_of_numbers_are_refused() -> None:
    with pytest.raises(BadInput, match="token sequences"):
        Mixture((PARTS[0], InContextRegression()))
