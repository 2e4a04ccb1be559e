"""Training in stages: what moves in each, and what it reaches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.learning.experiment import Training
from sandlab.learning.topics.losses import MaskedSquares
from sandlab.learning.topics.stages import alternating_stages, train_stages, two_stages
from sandlab.models.base import seeded
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.random import rng
from sandlab.worlds.topics.documents import LDATopics

WORLD = LDATopics(topics=3, words=2, lengths=(20, 30), last=15)
SHORT = Training(steps=3, batch_size=8, lr=0.01, optimizer="adam", evals=1, eval_examples=16)


def model() -> OneLayerTopics:
    with seeded(0):
        return OneLayerTopics(vocab=7, read=15)


def changed(before: dict[str, torch.Tensor], after: OneLayerTopics) -> set[str]:
    return {name for name, weight in after.named_parameters() if not torch.equal(before[name], weight)}


def copies(given: OneLayerTopics) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in given.named_parameters()}


def test_values_move_in_the_first_stage_and_attention_in_the_second() -> None:
    first, second = two_stages(SHORT, SHORT)
    given = model()
    before = copies(given)
    train_stages(given, WORLD, [first], rng=rng(0))
    assert changed(before, given) == {"value", "value_bias"}
    before = copies(given)
    train_stages(given, WORLD, [second], rng=rng(0))
    assert changed(before, given) == {"key", "query", "key_bias", "query_bias"}
    assert all(weight.requires_grad for name, weight in given.named_parameters() if name in given.config.trained)


def test_without_biases_only_matrices_move() -> None:
    given = model()
    before = copies(given)
    histories = train_stages(given, WORLD, alternating_stages(SHORT, SHORT, 2, bias=False), rng=rng(0))
    assert changed(before, given) == {"key", "query", "value"} and len(histories) == 4


def test_the_first_stage_is_training_under_uniform_attention() -> None:
    with seeded(0):
        large, uniform = OneLayerTopics(vocab=7, read=15), OneLayerTopics(vocab=7, read=15, attention="uniform")
    large.key.data.normal_(std=3.0)
    uniform.value.data.copy_(large.value.data)
    for given in (large, uniform):
        train_stages(given, WORLD, two_stages(SHORT, SHORT)[:1], rng=rng(1))
    torch.testing.assert_close(large.value, uniform.value)
    assert float(large.key.detach().std()) > 1


def test_attention_lowers_the_loss_that_values_alone_reach() -> None:
    how = Training(steps=300, batch_size=32, lr=0.02, optimizer="adam", objective=MaskedSquares(), evals=4)
    first, second = train_stages(model(), WORLD, two_stages(how, how), rng=rng(2))
    losses = np.array([first.metrics["loss"][-1], second.metrics["loss"][-1]])
    assert first.metrics["loss"][0] > losses[0] > losses[1]
    assert second.metrics["loss"][0] == pytest.approx(losses[0], abs=0.02)
