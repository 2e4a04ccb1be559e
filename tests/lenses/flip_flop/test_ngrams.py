"""The predictor with a short memory against the enumeration of all strings."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.lenses.flip_flop.exact_machines import window_error
from sandlab.lenses.flip_flop.ngrams import ngram_predictor
from sandlab.worlds.base import Batch
from sandlab.worlds.flip_flop.language import READ, FlipFlop

WORLDS = [FlipFlop(length=8, probs=((0.2, 0.3),)), FlipFlop(length=8, probs=((0.1, 0.05),), symbols=3)]


def batch_of(strings: torch.Tensor) -> Batch:
    return Batch(strings[:, :-1], strings[:, 1:], torch.ones_like(strings[:, 1:], dtype=torch.bool))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("window", range(1, 9))
def test_its_answers_are_the_law_of_the_strings_that_look_alike(world: FlipFlop, window: int) -> None:
    strings, weights = world.enumerate()
    predicted = ngram_predictor(world, window)(batch_of(strings)).exp()
    law: dict = defaultdict(lambda: np.zeros(world.symbols))
    views, errors = {}, 0.0
    for row, (string, weight) in enumerate(zip(strings.tolist(), weights.tolist())):
        for index in range(0, world.length, 2):
            if string[index] == READ:
                view = (index, *string[max(0, index - window + 1) : index + 1])
                law[view][string[index + 1] - 3] += weight
                views[view] = predicted[row, index, 3:].numpy()
                errors += weight * (views[view].argmax() != string[index + 1] - 3)
    for view, counts in law.items():
        assert np.allclose(views[view], counts / counts.sum(), atol=1e-12), view
    if window % 2 == 0:  # no ties, so that the most likely symbol is the only best guess
        reads = sum(counts.sum() for counts in law.values())
        assert errors / reads == pytest.approx(world.ngram_error(window)) == window_error(world, window)


def test_elsewhere_it_is_the_oracle_and_the_whole_string_gives_the_oracle() -> None:
    world = FlipFlop.ignoring(0.8, length=32)
    batch = world.sample(50, rng=sl.rng(0))
    best = world.oracle(batch)
    reads = (batch.inputs == READ).unsqueeze(-1)
    for window in (1, 4, 7):
        assert torch.equal(torch.where(reads, best, ngram_predictor(world, window)(batch)), best)
    assert torch.allclose(ngram_predictor(world, 32)(batch).exp(), best.exp())


def test_what_it_cannot_see_is_refused() -> None:
    with pytest.raises(sl.BadInput, match="window"):
        ngram_predictor(WORLDS[0], 0)
    with pytest.raises(sl.BadInput, match="single pair"):
        ngram_predictor(FlipFlop.ignoring(0.8, 0.1), 3)
    with pytest.raises(sl.BadInput, match="fine"):
        ngram_predictor(FlipFlop(tokens="coarse"), 3)
