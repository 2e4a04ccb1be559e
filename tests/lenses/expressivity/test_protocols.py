"""Protocols recombine exactly (C12), cost what they say, and lose accuracy with their bits."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.lenses.expressivity.protocols import (
    attention_protocol,
    protocol_accuracy,
    quantise,
    recurrent_protocol,
    recurrent_state_size,
)
from sandlab.models.base import seeded
from sandlab.models.recurrent import LSTM, RNN
from sandlab.models.state_space import StateSpace
from sandlab.models.transformer import Transformer
from sandlab.worlds.expressivity.communication import IndexProblem

TOKENS = torch.randint(0, 5, (7, 12), generator=sl.rng(0))


@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi", "relative", "none"])
@pytest.mark.parametrize("cut", [1, 6, 11])
def test_one_attention_layer_is_put_together_from_two_messages(positions: str, cut: int) -> None:
    with seeded(1):
        model = Transformer(
            vocab=5, length=12, layers=1, heads=3, width=12, positions=positions, init_std=0.7, outputs=4
        ).double()
    logits, numbers = attention_protocol(model, TOKENS, cut)
    with torch.no_grad():
        assert torch.allclose(logits, model(TOKENS)[:, -1:], atol=1e-10, rtol=0)
    assert numbers == 3 * (4 + 1)


def test_large_scores_do_not_overflow() -> None:
    with seeded(2):
        model = Transformer(vocab=5, length=12, layers=1, width=8, init_std=20.0, norm="none").double()
    logits, _ = attention_protocol(model, TOKENS, 5)
    with torch.no_grad():
        assert torch.allclose(logits, model(TOKENS)[:, -1:], rtol=1e-10)


@pytest.mark.parametrize("kind", [RNN, LSTM, StateSpace])
def test_recurrent_models_continue_from_the_message(kind) -> None:
    with seeded(3):
        model = kind(vocab=5, width=6, layers=2).double()
    with torch.no_grad():
        assert torch.allclose(recurrent_protocol(model, TOKENS, 4), model(TOKENS)[:, 4:], atol=1e-12)
    expected = {RNN: 2 * 6, LSTM: 2 * 12, StateSpace: 2 * (6 * 8 + 3 * 6)}[kind]
    assert recurrent_state_size(model) == expected


def test_rounding_keeps_the_ends_and_has_few_levels() -> None:
    values = torch.linspace(-3, 5, 101, dtype=torch.float64).unsqueeze(-1)
    rounded = quantise(values, 2)
    assert rounded.unique().tolist() == pytest.approx([-3.0, -1 / 3, 7 / 3, 5.0])
    assert quantise(values, 0).unique().tolist() == [1.0]
    assert torch.equal(quantise(values, 64), values)
    assert (quantise(values, 8) - values).abs().max() <= 8 / 255 / 2 + 1e-12


def test_no_bits_give_no_more_than_chance_on_index() -> None:
    world = IndexProblem(size=6, form="plain")
    batch = world.sample(2000, rng=sl.rng(4))
    with seeded(5):
        model = RNN(vocab=world.vocab, width=8, outputs=2)
    (bits, accuracy), (more, _) = protocol_accuracy(model, batch, 6, [0, 4])
    assert (bits, more) == (0, 32) and 0.4 < accuracy < 0.6
