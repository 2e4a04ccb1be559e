"""Exact weights on the binary chain: the marginal, the kernel, the rank-one family; Hessians at the marginal."""

import itertools
import math

import numpy as np
import pytest
import torch

from sandlab.circuits import kernel_predictor, marginal_predictor, three_parameter_transformer
from sandlab.errors import BadInput
from sandlab.learning.markov.one_layer import OneLayerMarkovTheory
from sandlab.lenses._flat import FlatLoss
from sandlab.lenses.curvature import hessian_matrix
from sandlab.models import ThreeParameterMarkov
from sandlab.models.base import seeded
from sandlab.random import rng

CHAINS = [(0.2, 0.3), (0.5, 0.8), (0.9, 0.9)]


def exact_loss(p: float, q: float, length: int):
    """The expected loss as a function of the model: every string of length + 1 tokens, weighted by its probability."""
    words = torch.tensor(list(itertools.product((0, 1), repeat=length + 1)))
    step = torch.tensor([[1 - p, p], [q, 1 - q]], dtype=torch.float64)
    start = torch.tensor([q, p], dtype=torch.float64) / (p + q)
    chance = start[words[:, 0]] * step[words[:, :-1], words[:, 1:]].prod(-1)

    def loss(model):
        log_probs = model(words[:, :-1]).log_softmax(-1)
        return -(chance * log_probs.gather(-1, words[:, 1:, None])[..., 0].mean(-1)).sum()

    return loss


@pytest.mark.parametrize(("p", "q"), CHAINS)
@pytest.mark.parametrize("tied", [True, False])
def test_the_marginal_predictor_is_a_stationary_point_with_the_marginals_entropy(p, q, tied):
    with seeded(0):
        model = marginal_predictor(p, q, length=5, width=4, tied=tied, init_std=0.5)
    words = torch.randint(2, (20, 5), generator=rng(0))
    np.testing.assert_allclose(model(words).softmax(-1)[..., 1].detach(), p / (p + q), atol=1e-14)
    flat = FlatLoss(model, exact_loss(p, q, 5))
    point = flat.point.requires_grad_()
    loss = flat(point)
    assert loss.item() == pytest.approx(OneLayerMarkovTheory(p, q).marginal_loss, abs=1e-12)
    (gradient,) = torch.autograd.grad(loss, point)
    assert gradient.abs().max() < 1e-14


@pytest.mark.parametrize(("p", "q"), CHAINS)
def test_the_tied_hessian_at_the_marginal_is_a_multiple_of_the_identity_of_the_sign_of_p_plus_q_minus_one(p, q):
    width = 3
    model = marginal_predictor(p, q, length=3, width=width, attention="none", mlp="none", positions=False)
    flat = FlatLoss(model, exact_loss(p, q, 3))
    assert flat.names == ["token", "bias"]
    c = OneLayerMarkovTheory(p, q).switching_slope
    variance = p * q / (p + q) ** 2
    expected = torch.diag(torch.tensor([2 * c] * width + [variance], dtype=torch.float64))
    torch.testing.assert_close(hessian_matrix(flat, flat.point), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("p", "q"), CHAINS)
def test_the_untied_hessian_at_the_marginal_is_indefinite(p, q):
    width = 3
    model = marginal_predictor(p, q, length=3, width=width, tied=False, attention="none", mlp="none", positions=False)
    flat = FlatLoss(model, exact_loss(p, q, 3))
    values = np.linalg.eigvalsh(hessian_matrix(flat, flat.point).numpy())
    c = abs(OneLayerMarkovTheory(p, q).switching_slope)
    variance = p * q / (p + q) ** 2
    np.testing.assert_allclose(values, sorted([-c] * width + [c] * width + [variance]), atol=1e-12)


@pytest.mark.parametrize(("p", "q"), CHAINS)
def test_attention_adds_the_older_moments_to_the_tied_hessian(p, q):
    """∂²L/∂e² = −π₀π₁[2λ·1 + mean_n(1/n)Σ_i λ^{n+1−i}·(M + Mᵀ)], M = W_O W_V: attention is uniform at e = 0."""
    length, width = 4, 3
    with seeded(1):
        model = marginal_predictor(p, q, length=length, width=width, mlp="none", positions=False, init_std=0.7)
    flat = FlatLoss(model, exact_loss(p, q, length), only="token")
    theory = OneLayerMarkovTheory(p, q)
    older = np.mean([np.mean([theory.cross_moment(n + 1 - i) for i in range(1, n + 1)]) for n in range(1, length + 1)])
    with torch.no_grad():
        mix = model.attention.output.weight @ model.attention.value.weight
    expected = -2 * theory.cross_moment(1) * torch.eye(width, dtype=torch.float64) - older * (mix + mix.mT)
    torch.testing.assert_close(hessian_matrix(flat, flat.point), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("p", "q"), [*CHAINS, (0.5, 0.5)])
def test_the_kernel_predictor_gives_the_true_kernel_everywhere(p, q):
    model = kernel_predictor(p, q, length=9, width=6)
    words = torch.randint(2, (30, 9), generator=rng(1))
    truth = torch.tensor([[1 - p, p], [q, 1 - q]], dtype=torch.float64)[words]
    torch.testing.assert_close(model(words).softmax(-1), truth, atol=1e-12, rtol=0)
    flat = FlatLoss(kernel_predictor(p, q, length=4, width=4), exact_loss(p, q, 4))
    assert flat(flat.point).item() == pytest.approx(OneLayerMarkovTheory(p, q).optimal_loss, abs=1e-12)


@pytest.mark.parametrize("embedding", [0.8, -1.3])
@pytest.mark.parametrize("feedforward", [0.6, 0.0, -0.9])
@pytest.mark.parametrize("attention", [0.0, 0.7])
def test_the_three_parameter_model_is_the_explicit_transformer(embedding, feedforward, attention):
    words = torch.randint(2, (40, 12), generator=rng(2))
    numbers = ThreeParameterMarkov(embedding=embedding, feedforward=feedforward, attention=attention, bias=0.3).double()
    matrices = three_parameter_transformer(embedding, feedforward, attention, 0.3, length=12, width=5)
    torch.testing.assert_close(numbers(words).log_softmax(-1), matrices(words).log_softmax(-1), atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("embedding", [0.8, -1.3])
@pytest.mark.parametrize("feedforward", [0.6, -0.9])
def test_without_attention_the_log_odds_are_affine_in_the_last_token_with_the_gain_of_the_theory(
    embedding, feedforward
):
    model = three_parameter_transformer(embedding, feedforward, 0.0, 0.4, length=2, width=4)
    odds = model(torch.tensor([[1, 0], [0, 1]])).diff(dim=-1)[:, 1, 0]
    gain = embedding**2 * (1 + 2 * feedforward * abs(feedforward))
    assert (odds[1] - odds[0]).item() == pytest.approx(gain)
    if embedding > 0:
        assert odds[0].item() == pytest.approx(0.4 - embedding**2 / 2)


def test_impossible_probabilities_are_refused():
    with pytest.raises(BadInput, match="p must be"):
        marginal_predictor(0.0, 0.5)
    with pytest.raises(BadInput, match="q must be"):
        kernel_predictor(0.5, math.nan)
