"""Accuracy of a model."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from sandlab.errors import BadInput
from sandlab.lenses import accuracy, accuracy_on, agreement
from sandlab.random import rng
from sandlab.worlds.base import Batch, World


@dataclass(frozen=True)
class Successor(World):
    """Targets are the next number modulo 5; every third position is not counted."""

    def sample(self, n, *, rng):
        tokens = torch.randint(5, (n, 9), generator=rng)
        mask = torch.arange(9).expand(n, 9) % 3 != 0
        return Batch(tokens, (tokens + 1) % 5, mask)


class Shift(nn.Module):
    """Certain that the answer is token + shift, except where the token is below `wrong`."""

    def __init__(self, shift: int = 1, wrong: int = 0) -> None:
        super().__init__()
        self.shift, self.wrong = shift, wrong

    def forward(self, tokens):
        answer = torch.where(tokens < self.wrong, tokens, tokens + self.shift) % 5
        return nn.functional.one_hot(answer, 5).double()


def test_a_right_model_is_right_everywhere_and_a_wrong_one_nowhere():
    assert accuracy(Shift(1), Successor(), examples=20, rng=rng(0)) == 1.0
    assert accuracy(Shift(2), Successor(), examples=20, rng=rng(0)) == 0.0


def test_accuracy_is_the_share_of_counted_targets():
    batch = Successor().sample(700, rng=rng(3))
    expected = float((batch.inputs >= 2)[batch.mask].double().mean())
    assert accuracy_on(Shift(1, wrong=2), batch) == pytest.approx(expected, abs=1e-12)


def test_accuracy_does_not_depend_on_how_many_examples_run_at_once():
    class Replay(World):
        batch, at = Successor().sample(100, rng=rng(1)), 0

        def sample(self, n, *, rng):
            type(self).at += n
            return self.batch[self.at - n : self.at]

    shares = []
    for chunk in (7, 64, 100):
        Replay.at = 0
        shares.append(accuracy(Shift(1, wrong=2), Replay(), examples=100, rng=rng(0), chunk=chunk))
    assert max(shares) - min(shares) < 1e-12


def test_the_former_name_is_an_alias():
    assert agreement is accuracy


def test_a_population_gets_one_share_per_member():
    class Two(nn.Module):
        def forward(self, tokens):
            return torch.stack([Shift(1)(tokens), Shift(2)(tokens)])

    assert accuracy(Two(), Successor(), examples=10, rng=rng(0)).tolist() == [1.0, 0.0]


def test_soft_targets_count_by_their_most_likely_class():
    batch = Successor().sample(10, rng=rng(0))
    soft = Batch(batch.inputs, 0.6 * nn.functional.one_hot(batch.targets, 5) + 0.08, batch.mask)
    assert accuracy_on(Shift(1), soft) == 1.0


def test_no_examples_are_refused():
    with pytest.raises(BadInput, match="examples"):
        accuracy(Shift(), Successor(), examples=0, rng=rng(0))
