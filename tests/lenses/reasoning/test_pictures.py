"""Pictures of actions and chains can be drawn; attention lenses measure what the dense network does."""

from __future__ import annotations

import numpy as np
import pytest

from sandlab import rng
from sandlab.circuits.reasoning.ideal import ideal_lego_transformer
from sandlab.lenses.reasoning.concentration import attention_concentration
from sandlab.lenses.reasoning.pictures import draw_action, draw_chain
from sandlab.lenses.reasoning.routing import block_norms, q_diagonal
from sandlab.models.base import build, seeded
from sandlab.models.reasoning.lego import LegoConfig
from sandlab.worlds.reasoning.lego import Lego

WORLD = Lego("C3", variables=10, length=5, predict_blanks=True)


def test_an_action_and_a_chain_are_drawn():
    assert draw_action("S3").axes[0].texts and draw_action("C5", [1]).axes[0].texts
    drawn = draw_chain(ideal_lego_transformer(WORLD, 4.0), WORLD, step=2, rng=rng(0))
    assert [text.get_text() for text in drawn.axes[0].texts if "=" in text.get_text()]


def test_the_lens_sees_the_masses_of_the_ideal_network():
    found = attention_concentration(ideal_lego_transformer(WORLD, 3.0, 2.0), WORLD, examples=4, rng=rng(0))
    for step in range(1, 6):
        total = np.exp(3.0) + np.exp(2.0) + 5 + step - 2
        assert float(found.left_over[step - 1]) == pytest.approx((5 + step - 2) / total, abs=1e-9)
        assert float(found.gap[step - 1]) == pytest.approx((np.exp(3.0) - np.exp(2.0)) / total, abs=1e-9)
    assert float(found.top) == 1.0 == float(found.own)


def test_the_blocks_of_the_ideal_network_are_two_diagonals():
    model = ideal_lego_transformer(WORLD, 3.0, 2.0)
    blocks = q_diagonal(model, WORLD.variables)
    assert (blocks.predicate == 3).all() and (blocks.answer == 2).all() and blocks.ratio == (0.0, 0.0)
    norms = block_norms(model, WORLD.variables)
    assert norms[3, 2] == 3 and norms[3, 3] == 2 and np.count_nonzero(norms) == 2


def test_the_blocks_of_a_trained_transformer_are_its_scores():
    config = LegoConfig(WORLD.vocab, token_width=4, head_width=4, hidden=8)
    with seeded(0):
        model = build(config)
    weight = model.layers[0].attention
    table = model.embedding.weight.detach().numpy()
    query, key = (part.weight.detach().numpy().reshape(2, 4, 5, 4) for part in (weight.query, weight.key))
    scores = np.einsum("au,hku,hkv,bv->ab", table[:10], query[:, :, 3], key[:, :, 2], table[:10]) / 2 / 2
    diagonal = np.diag(scores).mean() - scores[~np.eye(10, dtype=bool)].mean()
    assert block_norms(model, 10)[3, 2] == pytest.approx(diagonal, abs=1e-5)
