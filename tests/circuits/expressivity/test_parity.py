"""Parity by a state-space model (C11)."""

from __future__ import annotations

import torch

import sandlab as sl
from sandlab.circuits.expressivity.parity import parity_state_space
from sandlab.models.base import seeded
from sandlab.models.state_space import StateSpace


def test_a_thousand_words_of_256_bits_get_their_parity_at_every_position() -> None:
    words = torch.randint(0, 2, (1000, 256), generator=sl.rng(0))
    with torch.no_grad():
        assert torch.equal(parity_state_space()(words).argmax(-1), words.cumsum(-1) % 2)


def test_the_state_is_exactly_plus_or_minus_one() -> None:
    model = parity_state_space()
    words = torch.randint(0, 2, (20, 64), generator=sl.rng(1))
    with sl.record(model, "layers.0.recurrence.hidden") as cache, torch.no_grad():
        model(words)
    state = cache["layers.0.recurrence.hidden"][..., 0]
    assert torch.equal(state[..., 0], (1 - 2 * (words.cumsum(-1) % 2)).double())


def test_with_gates_between_zero_and_one_the_answer_to_all_ones_converges() -> None:
    ones = torch.ones(1, 2000, dtype=torch.long)
    for seed in range(5):
        with seeded(seed):
            model = StateSpace(vocab=2, width=8, layers=2, outputs=2, convolution=1).double()
        with torch.no_grad():
            steps = model(ones)[0].diff(dim=0).abs().amax(-1)
        assert float(steps[-1]) < 1e-6 < float(steps[0])
    with torch.no_grad():
        assert float(parity_state_space()(ones)[0].diff(dim=0).abs().amin()) > 1.0
