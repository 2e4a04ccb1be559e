"""The transformers over clauses: smooth ReLUs, shapes, equivariance, members."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.learning.population import Population
from sandlab.models.base import build, seeded
from sandlab.models.reasoning.lego import LegoConfig, LegoTransformer
from sandlab.models.reasoning.smooth_relu import modified_smooth_relu, smooth_relu, smooth_relu_slope
from sandlab.models.reasoning.theory import LegoTheoryTransformer, clause_vectors
from sandlab.worlds.reasoning.lego import Lego

WORLD = Lego("C3", variables=12, length=5)
SMALL = LegoConfig(WORLD.vocab, token_width=8, head_width=8, hidden=16)


@pytest.mark.parametrize("variant", ["zero-neg", "paper"])
def test_the_smooth_relu_is_continuous_and_its_slope_is_the_derivative(variant):
    x = torch.linspace(-0.5, 0.5, 4001, dtype=torch.float64, requires_grad=True)
    y = smooth_relu(x, 4, 0.1, variant)
    assert float(y.diff().abs().max()) < 3e-4
    (slope,) = torch.autograd.grad(y.sum(), x)
    away = (x.abs() - 0.1).abs() > 1e-9
    assert torch.allclose(slope[away], smooth_relu_slope(x, 4, 0.1, variant)[away].detach(), atol=1e-12)
    assert float(smooth_relu(torch.tensor(0.3), 4, 0.1, variant)) == pytest.approx(0.3 - 0.075)


def test_the_papers_variant_is_constant_below_and_its_derivative_jumps_there():
    low = torch.tensor([-0.2, -0.1000001, -0.0999999], dtype=torch.float64)
    assert torch.allclose(smooth_relu(low, 4, 0.1, "paper"), torch.full((3,), 0.025, dtype=torch.float64), atol=1e-6)
    slopes = smooth_relu_slope(low, 4, 0.1, "paper")
    assert slopes[1] == 0 and slopes[2] == pytest.approx(-1, abs=1e-5)


def test_the_modified_smooth_relu_is_continuously_differentiable_and_saturates():
    x = torch.linspace(-2, 1, 6001, dtype=torch.float64, requires_grad=True)
    y = modified_smooth_relu(x, 4, 0.1, slope=0.05, floor=1.0)
    (slope,) = torch.autograd.grad(y.sum(), x)
    inner = (x[:-1] > -0.99) & (x[:-1] < 0.9)
    assert float(y.diff().abs().max()) < 1e-3 and float(slope.diff().abs()[inner].max()) < 0.02
    assert float(y[0]) == pytest.approx(0.05 * 1.0 - 0.05**2 / 2)


def test_clause_vectors_are_unit_vectors_and_blanks_are_zero():
    batch = WORLD.sample(3, rng=rng(0))
    z = clause_vectors(batch.inputs, WORLD.vocab, torch.float64)
    assert z.shape == (3, 10, 5 * WORLD.vocab)
    assert torch.equal(z.sum(-1)[0], torch.tensor([3.0] * 5 + [2.0] * 5, dtype=torch.float64))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"residual": True},
        {"values": "identity"},
        {"layernorm": True, "residual": True, "layers": 2},
        {"predicted": 5},
        {"positions": "learned"},
        {"positions": "rotary"},
        {"positions": "alibi"},
    ],
)
def test_every_option_gives_logits_and_populations_compute_each_member(change):
    config = replace(SMALL, **change)
    batch = WORLD.sample(4, rng=rng(1))
    population = Population(lambda seed: build(config), seeds=(3, 4), strategy="native")
    together = population(batch.inputs)
    assert together.shape == (2, 4, 5 * config.predicted, WORLD.vocab)
    with seeded(4):
        alone = build(config)
    assert torch.allclose(together[1], alone(batch.inputs), atol=1e-5)


def test_without_positions_a_permutation_of_the_predicates_changes_no_answer():
    with seeded(0):
        model = build(SMALL).double()
    batch = WORLD.sample(20, rng=rng(2))
    order = torch.rand(20, 5, generator=rng(3)).argsort(-1)
    truth = batch.truth
    moved = WORLD.compose(truth["variables"], truth["actions"], truth["values"], order)
    assert torch.equal(moved.targets, batch.targets)
    assert torch.allclose(model(moved.inputs)[:, -10:], model(batch.inputs)[:, -10:], atol=1e-12)


def test_logits_of_the_answers_are_the_same_whether_or_not_the_predicates_are_asked_too():
    for positions in ("none", "learned", "rotary", "alibi"):
        config = replace(SMALL, positions=positions, layers=2, residual=True)
        models = []
        for queries in ("half", "all"):
            with seeded(0):
                models.append(build(replace(config, queries=queries)))
        inputs = WORLD.sample(3, rng=rng(0)).inputs
        assert torch.allclose(models[0](inputs), models[1](inputs)[:, 10:], atol=1e-6)


def test_positions_break_that_equivariance():
    for positions in ("learned", "rotary", "alibi"):
        with seeded(0):
            model = build(replace(SMALL, positions=positions)).double()
        batch = WORLD.sample(20, rng=rng(2))
        order = torch.arange(4, -1, -1).expand(20, -1)
        moved = WORLD.compose(*(batch.truth[name] for name in ("variables", "actions", "values")), order)
        assert float((model(moved.inputs)[:, -10:] - model(batch.inputs)[:, -10:]).detach().abs().max()) > 1e-6


def test_the_theory_transformer_starts_with_uniform_attention_and_clips():
    model = LegoTheoryTransformer(vocab=WORLD.vocab, neurons=3, clip=0.01, init_std=1.0).double()
    logits = model(WORLD.sample(2, rng=rng(0)).inputs)
    assert logits.shape == (2, 50, WORLD.vocab) and float(logits.detach().max()) == pytest.approx(0.01)


def test_the_asymptotic_initialisation_is_not_small_at_laptop_size():
    world = Lego("C6", variables=187, length=1)
    assert world.vocab == 200
    z = clause_vectors(world.sample(50, rng=rng(0)).inputs, 200, torch.float64)
    for std, bias, threshold in ((None, None, 0.1), (0.02, 0.05, 1.0)):
        with seeded(0):
            model = LegoTheoryTransformer(vocab=200, neurons=2, threshold=threshold, init_std=std, bias=bias).double()
        inner = model.neurons(z.mean(1)).detach()
        linear, active = (float((inner > level).double().mean()) for level in (threshold, 0.0))
        if std is None:  # μ = σ_0 log d lies above ϱ: nearly every neuron is linear from the start
            assert float(model.bias) == pytest.approx(200**-0.5 * math.log(200)) and linear > 0.99
        else:
            assert linear == 0.0 and active > 0.97


def test_block_sparse_scores_are_those_of_the_whole_matrix():
    sparse = LegoTheoryTransformer(vocab=WORLD.vocab, neurons=1).double()
    whole = LegoTheoryTransformer(vocab=WORLD.vocab, neurons=1, block_sparse=False).double()
    d = WORLD.vocab
    with torch.no_grad():
        torch.nn.init.normal_(sparse.q43)
        torch.nn.init.normal_(sparse.q44)
        whole.q[3 * d : 4 * d, 2 * d : 3 * d] = sparse.q43
        whole.q[3 * d : 4 * d, 3 * d : 4 * d] = sparse.q44
    z = clause_vectors(WORLD.sample(3, rng=rng(0)).inputs, d, torch.float64)
    assert torch.allclose(sparse.attention_scores(z), whole.attention_scores(z))


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(BadInput, match="values"):
        LegoTransformer(vocab=20, values="identity", residual=True)
    with pytest.raises(BadInput, match="clip"):
        LegoTheoryTransformer(vocab=20, clip=0.0)
