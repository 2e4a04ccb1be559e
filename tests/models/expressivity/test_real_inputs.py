"""The transformer for vectors."""

from __future__ import annotations

import torch

import sandlab as sl
from sandlab.models.base import build, seeded
from sandlab.models.expressivity.real_inputs import RealTransformer, RealTransformerConfig


def test_predictions_do_not_depend_on_the_future() -> None:
    with seeded(0):
        model = RealTransformer(vocab=1, length=6, features=3, width=8, outputs=1)
    inputs = torch.randn(2, 6, 3, generator=sl.rng(0))
    changed = inputs.clone()
    changed[:, 4:] += 1.0
    with torch.no_grad():
        assert torch.equal(model(inputs)[:, :4], model(changed)[:, :4])
    assert model(inputs).shape == (2, 6, 1)


def test_it_is_built_from_its_config_and_computed_as_a_population() -> None:
    config = RealTransformerConfig(vocab=1, length=4, features=2, width=8, outputs=1)
    assert isinstance(build(config), RealTransformer)
    population = sl.learning.Population(lambda seed: build(config), seeds=[0, 1])
    inputs = torch.randn(3, 4, 2, generator=sl.rng(1))
    alone = []
    for seed in (0, 1):
        with seeded(seed):
            alone.append(build(config)(inputs))
    assert torch.allclose(population(inputs), torch.stack(alone), atol=1e-6)
