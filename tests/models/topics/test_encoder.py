"""The encoder: marks are not seen, and logits at marked positions are those among all."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from sandlab.learning.population import Population
from sandlab.models.base import build, seeded
from sandlab.models.topics.encoder import MaskedEncoder, MaskedEncoderConfig
from sandlab.random import rng
from sandlab.worlds.topics.pseudo_wiki import PseudoWiki

CONFIG = MaskedEncoderConfig(vocab=62, length=20, layers=2, heads=2, width=16)


def model(**changes: object) -> MaskedEncoder:
    with seeded(0):
        found = build(replace(CONFIG, **changes))  # type: ignore[arg-type]
    assert isinstance(found, MaskedEncoder)
    return found.double()


def test_logits_at_marked_positions_are_those_among_all_and_marks_are_not_seen() -> None:
    world = PseudoWiki(size=60, stops=5, topics=3, lengths=(20, 20), marked=8)
    batch = world.sample(6, rng=rng(0))
    every, some = model()(batch.inputs % 62), model(marked=8)(batch.inputs)
    torch.testing.assert_close(model()(batch.inputs), every)
    for row in range(6):
        marked = (batch.inputs[row] >= 62).nonzero().flatten()[-8:]
        torch.testing.assert_close(some[row, -len(marked) :], every[row, marked])
        assert torch.equal(batch.truth["words"][row, marked], batch.targets[row, -len(marked) :])


def test_an_encoder_sees_what_follows() -> None:
    tokens = torch.randint(1, 60, (1, 20))
    other = tokens.clone()
    other[0, -1] = 61
    assert not torch.allclose(model()(tokens)[0, 0], model()(other)[0, 0])


def test_mean_attention_is_that_of_all_heads_and_is_uniform_near_zero() -> None:
    tokens = torch.randint(1, 60, (3, 11))
    found = model().mean_attention(tokens)
    torch.testing.assert_close(found.sum(-1), torch.ones(3, 11, dtype=torch.float64))
    near = model(attention_std=1e-6).mean_attention(tokens)
    torch.testing.assert_close(near, torch.full_like(near, 1 / 11), atol=1e-6, rtol=0)
    weight = model(attention_std=1e-3).layers[0].attention.value.weight
    assert float(weight.detach().std()) == pytest.approx(1e-3, rel=0.1)


def test_a_population_computes_what_its_members_do() -> None:
    config = replace(CONFIG, marked=4)
    population = Population(lambda seed: build(config), seeds=(0, 1))
    tokens = torch.randint(1, 124, (2, 5, 20))
    together = population(tokens, per_member=True)
    for index in range(2):
        with seeded(index):
            alone = build(config)
        torch.testing.assert_close(together[index], alone(tokens[index]), atol=1e-5, rtol=1e-5)
