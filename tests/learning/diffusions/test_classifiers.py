"""Contrastive classifiers: realising coefficients, fitted tables and logits, and the kernels they imply."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import sandlab as sl
from sandlab.learning.diffusions.classifiers import (
    EvenLogit,
    KernelEstimate,
    LogitClassifier,
    PolynomialLogit,
    fit_logit,
    fit_table,
    ou_logit,
    read_ou,
)
from sandlab.learning.diffusions.networks import ContrastiveSquares, network_logit
from sandlab.learning.objectives import MemberBatch
from sandlab.lenses.diffusions.kernels import kernel_metrics, ou_kl, sampled_kl
from sandlab.models.mlp import MLP
from sandlab.worlds.base import Batch
from sandlab.worlds.diffusions.contrast import ContrastLaw, GaussianContrast, NearbyContrast, StationaryContrast
from sandlab.worlds.diffusions.grid import GridChain
from sandlab.worlds.diffusions.pairs import ContrastivePairs, Pairs, make_pairs
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck

LAWS = (StationaryContrast(), GaussianContrast(0.0, 2.0), NearbyContrast(1.0))


@pytest.mark.parametrize("q", LAWS, ids=repr)
def test_four_features_realise_the_optimal_classifier(q: ContrastLaw) -> None:
    x, later = np.random.default_rng(0).normal(size=(2, 50, 1))
    theta = ou_logit(1.0, 0.5, q)
    expected = ContrastivePairs(q=q).log_ratio(x, later)
    np.testing.assert_allclose(EvenLogit()(x, later) @ theta, expected, atol=1e-12)
    found = read_ou(LogitClassifier(EvenLogit(), theta, 0.0), 0.5, q)
    assert found["rho"] == pytest.approx(1.0, abs=1e-12)
    assert found["a"] == pytest.approx(math.exp(-0.5), abs=1e-12)
    assert found["v"] == pytest.approx(1 - math.exp(-1.0), abs=1e-12)


def test_a_kernel_that_cannot_be_normalised_is_no_number() -> None:
    found = read_ou(LogitClassifier(EvenLogit(), np.array([0.0, 0, 1, 0]), 0.0), 0.5, GaussianContrast(0.0, 1.0))
    assert math.isnan(found["rho"])


@pytest.mark.parametrize("loss", ["squared", "cross-entropy"])
@pytest.mark.parametrize("features", [EvenLogit(), PolynomialLogit()], ids=["even", "all"])
def test_both_losses_recover_the_drift_from_one_path(loss: str, features: EvenLogit) -> None:
    rng, q = np.random.default_rng(0), StationaryContrast()
    pairs = make_pairs(OrnsteinUhlenbeck().path(80_000, 0.5, rng), q, rng)
    assert read_ou(fit_logit(pairs, features, loss=loss), 0.5, q)["rho"] == pytest.approx(1.0, abs=0.1)


def test_the_table_of_a_million_pairs_is_the_optimal_classifier() -> None:
    chain, rng = GridChain(reach=2.0, cells=20), np.random.default_rng(0)
    kernel, count = chain.kernel(0.5), 1_000_000
    start = rng.choice(20, size=count, p=chain.stationary)
    y = rng.random(count) < 0.5
    steps = (rng.random(count)[:, None] > np.cumsum(kernel, 1)[start]).sum(1)
    after = np.where(y, steps, rng.choice(20, size=count, p=chain.stationary))
    pairs = Pairs(chain.x[start][:, None], chain.x[np.minimum(after, 19)][:, None], y)
    table, sizes = fit_table(pairs, np.linspace(-2, 2, 21))
    best = kernel / (kernel + chain.stationary)
    assert math.sqrt((sizes * (table - best) ** 2).sum() / sizes.sum()) < 0.02


def test_a_realised_classifier_is_the_true_kernel_on_a_grid() -> None:
    chain, q = GridChain(reach=6.0, cells=200), GaussianContrast(0.0, 2.0)
    estimate = KernelEstimate(LogitClassifier(EvenLogit(), ou_logit(1.0, 0.5, q), 0.0).logit, q)
    found = kernel_metrics(chain.kernel(0.5), estimate.on_grid(chain.x, chain.width), chain.stationary, chain.x, 0.5)
    assert abs(found["avg_kl"]) < 1e-4
    assert found["mass_rms"] < 1e-3
    np.testing.assert_allclose(estimate.normalised(chain.x, chain.width).sum(1), 1, atol=1e-12)


def test_the_sampled_divergence_is_that_of_the_closed_form() -> None:
    pairs = ContrastivePairs(q=GaussianContrast(0.0, 2.0))
    theta = ou_logit(1.3, 0.5, pairs.q)
    a = math.exp(-0.65)
    found = sampled_kl(pairs, lambda x, later: EvenLogit()(x, later) @ theta, np.random.default_rng(0), 400_000)
    assert found == pytest.approx(ou_kl(a, (1 - a**2) / 1.3, 0.5), abs=2e-3)


def test_the_squared_objective_is_brier_s_score_for_one_model_and_for_members() -> None:
    logits = torch.randn(3, 5, 1, 2, generator=sl.rng(0))
    y = torch.tensor([0, 1, 1, 0, 1])[:, None]
    batch = Batch(torch.zeros(5, 2), y, torch.ones_like(y, dtype=torch.bool))
    h = logits.softmax(-1)[..., 1]
    expected = (h - y).square().mean((1, 2))
    torch.testing.assert_close(ContrastiveSquares()(logits, batch), expected)
    torch.testing.assert_close(ContrastiveSquares()(logits[0], batch), expected[0])
    apart = MemberBatch(*(each.expand(3, *each.shape) for each in (batch.inputs, y, batch.mask)))
    torch.testing.assert_close(ContrastiveSquares()(logits, apart), expected)


def test_the_logit_of_a_network_is_the_difference_of_its_classes() -> None:
    model: nn.Module = MLP(features=2, hidden=(4,), outputs=2)
    x, later = np.zeros((3, 1)), np.ones((3, 1))
    scores = model(torch.tensor([[0.0, 1.0]]))[0, 0]
    np.testing.assert_allclose(network_logit(model)(x, later), float((scores[1] - scores[0]).detach()), atol=1e-6)
