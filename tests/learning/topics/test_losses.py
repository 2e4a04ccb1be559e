"""The squared loss against its formula, and weight decay against the penalty."""

from __future__ import annotations

import pytest
import torch

from sandlab.learning.topics.losses import MaskedSquares, frobenius
from sandlab.learning.training import train
from sandlab.models.base import seeded
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.random import rng
from sandlab.worlds.topics.documents import LDATopics

WORLD = LDATopics(topics=3, words=2, lengths=(10, 12))


def test_the_loss_sums_over_the_vocabulary_at_predicted_positions_alone() -> None:
    batch = WORLD.sample(5, rng=rng(0))
    outputs = torch.randn(*batch.inputs.shape, 7, generator=rng(1), dtype=torch.float64)
    true = torch.nn.functional.one_hot(batch.targets, 7)
    expected = (outputs - true).square().sum(-1)[batch.mask].mean()
    torch.testing.assert_close(MaskedSquares()(outputs, batch), expected)
    torch.testing.assert_close(MaskedSquares("mean")(outputs, batch), expected / 7)
    members = torch.stack([outputs, 2 * outputs])
    torch.testing.assert_close(MaskedSquares()(members, batch)[1], MaskedSquares()(2 * outputs, batch))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_weight_decay_takes_the_steps_of_the_squared_norm(optimizer: str) -> None:
    def fresh() -> OneLayerTopics:
        with seeded(0):
            return OneLayerTopics(vocab=7, attention="uniform", trained=("value",), std=0.3)

    model, strength, lr = fresh(), 0.05, 0.1
    train(
        model, WORLD, steps=3, batch_size=4, rng=rng(2), objective=MaskedSquares(), optimizer=optimizer, lr=lr,
        weight_decay=frobenius(strength),
    )  # fmt: skip
    by_hand, draws = fresh(), rng(2)
    rule = torch.optim.SGD if optimizer == "sgd" else torch.optim.Adam
    descent = rule([by_hand.value], lr=lr)
    for _ in range(3):
        batch = WORLD.sample(4, rng=draws)
        loss = MaskedSquares()(by_hand(batch.inputs), batch) + strength * by_hand.value.square().sum()
        descent.zero_grad()
        loss.backward()
        descent.step()
    torch.testing.assert_close(model.value, by_hand.value, rtol=1e-4, atol=1e-5)
