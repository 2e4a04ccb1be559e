"""Majority, disjointness and index."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.worlds.expressivity.communication import IndexProblem, Majority, SetDisjointness


def test_majority_of_every_prefix() -> None:
    batch = Majority(length=9).sample(50, rng=sl.rng(0))
    for word, answers in zip(batch.inputs.tolist(), batch.targets.tolist()):
        assert answers == [int(2 * sum(word[: t + 1]) > t + 1) for t in range(9)]


def test_majority_of_words_of_several_lengths_counts_inside_only() -> None:
    world = Majority(length=(3, 9))
    batch = world.sample(200, rng=sl.rng(1))
    assert torch.equal(batch.mask.sum(1), batch.truth["size"])
    assert ((batch.inputs == 2) == ~batch.mask).all()
    assert world.optimal_loss(batch) == 0.0


def test_majority_as_a_language() -> None:
    world = Majority(length=3, running=False)
    assert world.accepts(torch.tensor([1, 0, 1])) is True
    assert world.accepts(torch.tensor([[1, 0], [1, 1]])).tolist() == [False, True]
    assert world.sample(5, rng=sl.rng(0)).targets.shape == (5, 1)


@pytest.mark.parametrize("law", ["planted", "uniform"])
@pytest.mark.parametrize("separator", [False, True])
def test_disjointness_is_what_the_sets_say(law: str, separator: bool) -> None:
    world = SetDisjointness(size=5, law=law, separator=separator, ones=0.3)
    batch = world.sample(300, rng=sl.rng(2))
    both = batch.truth["sets"].prod(1).sum(-1)
    assert torch.equal(batch.targets.squeeze(-1), (both == 0).long())
    assert batch.inputs.shape[1] == world.length and world.optimal_loss(batch) == 0.0


def test_planted_sets_meet_in_half_of_the_words_and_in_one_place() -> None:
    batch = SetDisjointness(size=12).sample(4000, rng=sl.rng(3))
    both = batch.truth["sets"].prod(1).sum(-1)
    assert int(both.max()) == 1 and 0.46 < float(both.double().mean()) < 0.54


@pytest.mark.parametrize(("form", "order"), [("plain", "fixed"), ("induction", "fixed"), ("induction", "shuffled")])
def test_index_answers_with_the_bit_that_is_asked_for(form: str, order: str) -> None:
    world = IndexProblem(size=6, form=form, order=order)
    batch = world.sample(300, rng=sl.rng(4))
    asked = batch.truth["bits"].gather(1, batch.truth["index"].unsqueeze(-1))
    assert torch.equal(batch.targets, asked) and world.optimal_loss(batch) == 0.0


def test_the_induction_form_is_an_induction_task() -> None:
    world = IndexProblem(size=4, order="shuffled")
    for word in world.sample(50, rng=sl.rng(5)).inputs.tolist():
        assert word.count(word[-1]) == 2 and len(set(word[:-1:2])) == 4


@pytest.mark.parametrize(
    ("world", "bad"),
    [
        (Majority, {"length": (3, 4), "running": False}), (Majority, {"ones": 2.0}), (SetDisjointness, {"size": 0}),
        (IndexProblem, {"form": "plain", "order": "shuffled"}), (IndexProblem, {"form": "x"}),
    ],
)  # fmt: skip
def test_impossible_worlds_are_refused(world, bad) -> None:
    with pytest.raises(BadInput):
        world(**bad)
