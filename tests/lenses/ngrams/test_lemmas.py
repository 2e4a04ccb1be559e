"""Errors of points and counts against the lemmas: zero where they hold, large where they do not."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.circuits.ngrams.counting import ngram_estimator
from sandlab.lenses.ngrams.jacobians import attention_jacobian_error, simplified_jacobian_error
from sandlab.lenses.ngrams.lemmas import (
    count_errors,
    counting_error,
    key_gradient_errors,
    look_back_error,
    matching_excess,
    score_form_error,
)
from sandlab.lenses.ngrams.theory import covered, enumerate_world, population_gradient
from sandlab.models.base import seeded
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.worlds.markov.chain import MarkovChain
from sandlab.worlds.ngrams.in_context import InContextNgrams

WORLD = InContextNgrams(states=3, order=2, length=48, concentration=1.0)


def test_a_construction_has_no_error_and_another_order_has() -> None:
    tokens = WORLD.sample(40, rng=sl.rng(0)).inputs
    point = ngram_estimator(3, 1, 48, floor=0.0)
    assert counting_error(point, 1, tokens) < 1e-9 < 0.1 < counting_error(point, 2, tokens)


def test_attention_weights_belong_to_the_temperature_they_were_made_with() -> None:
    point, tokens = ngram_estimator(3, 2, 48, temperature=12.0), WORLD.sample(40, rng=sl.rng(1)).inputs
    assert look_back_error(point, (1, 2), 12.0) < 1e-12 < 1e-3 < look_back_error(point, (1, 2), 4.0)
    assert matching_excess(point, 2, tokens, 12.0) == 0.0
    assert matching_excess(ngram_estimator(3, 2, 48, temperature=2.0), 2, tokens, 16.0) > 0.1


def test_the_key_gradient_has_its_closed_form_only_at_the_point() -> None:
    batch = InContextNgrams(3, 2, 200, 1.0).sample(150, rng=sl.rng(2))
    batch = batch[covered(batch.inputs, 3, 1)]
    point = ngram_estimator(3, 1, 200, heads=2, temperature=30.0)
    assert max(key_gradient_errors(point, batch, (1,), 30.0)) < 1e-9
    with torch.no_grad():
        point.get_parameter("layers.1.attention.key.weight").mul_(0.1)
    assert max(key_gradient_errors(point, batch, (1,), 30.0)) > 1e-3


def test_the_score_form_is_the_gradient() -> None:
    with seeded(0):
        model = SimplifiedTransformer(vocab=2, length=5, floor=1e-300).double()
    assert score_form_error(model, enumerate_world(InContextNgrams(2, 2, 5, 1.0))) < 1e-12


@pytest.mark.parametrize("lags", [(), (1,), (2,), (1, 2)])
def test_counts_come_closer_to_their_limit_as_one_over_the_root_of_the_length(lags: tuple[int, ...]) -> None:
    chain = MarkovChain.random(3, 2, seed=0, length=100_000)
    errors = count_errors(chain, lags, (1000, 100_000), rng=sl.rng(3))
    assert errors[1] < 0.02 and errors[0] / errors[1] > 2


def test_closed_forms_of_derivatives_equal_autograd() -> None:
    shapes = ((6, 4), (3, 4), (3, 4), (5, 4))
    generator = sl.rng(0)
    parts = [torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes]
    assert attention_jacobian_error(*parts) < 1e-12
    with seeded(1):
        model = SimplifiedTransformer(vocab=3, length=6, floor=0.0).double()
    assert simplified_jacobian_error(model, torch.tensor([0, 1, 2, 0, 0, 1])) < 1e-14


def test_the_inner_product_of_two_halves_is_the_squared_norm_without_noise() -> None:
    model = ngram_estimator(3, 0, 12, heads=2)
    with seeded(0):
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.5)
    batch = InContextNgrams(3, 2, 12, 0.5).sample(400, rng=sl.rng(0))
    halves = []
    for part in (batch[:200], batch[200:]):
        loss = -(part.targets * model(part.inputs)).sum((-1, -2)).mean()
        halves.append(torch.cat([each.flatten() for each in torch.autograd.grad(loss, list(model.parameters()))]))
    assert float(population_gradient(model, batch)) == pytest.approx(float((halves[0] @ halves[1]).sqrt()), rel=1e-6)
