"""A small model trains on one of torch's threads, unless somebody has said otherwise."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import sandlab as sl
from sandlab.learning._engine import threads

WORLD = sl.worlds.InContextMarkov(states=2, length=4)


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch):
    """A torch of three threads, whose number nobody has asked for."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def seen(model: nn.Module, **options: object) -> set[int]:
    """The number of threads while it trains."""
    found: list[int] = []
    sl.learning.train(
        model,
        WORLD,
        steps=2,
        rng=sl.rng(0),
        callbacks=(lambda *_: found.append(torch.get_num_threads()),),
        progress=False,
        **options,
    )
    return set(found)


def model(_seed: int = 0) -> nn.Module:
    return sl.models.RNN(vocab=2, width=4)


def test_a_small_model_and_a_population_train_on_one_thread_and_leave_torch_as_it_was() -> None:
    assert seen(model()) == {1}
    assert seen(sl.learning.Population(model, seeds=range(3))) == {1}
    assert torch.get_num_threads() == 3
    with pytest.raises(sl.BadInput):
        seen(model(), lr=-1.0)
    assert torch.get_num_threads() == 3


def test_what_the_environment_says_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does what a job has settled: it says it there."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert seen(model()) == {3}


def test_the_size_is_that_of_one_member(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = sum(each.numel() for each in model().parameters())
    monkeypatch.setattr(threads, "MANY", weights)
    assert seen(model()) == seen(sl.learning.Population(model, seeds=range(3))) == {3}
    monkeypatch.setattr(threads, "MANY", 2 * weights)  # a population rounds up
    assert seen(model()) == seen(sl.learning.Population(model, seeds=range(3))) == {1}


def test_elsewhere_nothing_changes() -> None:
    assert not threads._is_small(nn.Linear(2, 2, device="meta"))
    assert not threads._is_small(None)
