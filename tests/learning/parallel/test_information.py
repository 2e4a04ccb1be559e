"""Exact information of masked estimators against finite differences, traces and orderings of the theory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from sandlab.learning.parallel.information import (
    asymptotic_variance,
    fisher_information,
    mask_information,
    masked_curvature,
    sandwich_variance,
)
from sandlab.learning.parallel.pseudolikelihood import MaskedCounts, MaskedLoss
from sandlab.worlds.parallel.families import DiscreteFamily, Ising
from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw, size_masks


def random_ising(sites: int, seed: int) -> Ising:
    draws = np.random.default_rng(seed)
    pairs = sites * (sites - 1) // 2
    return Ising(sites, tuple(draws.normal(0, 0.5, pairs).tolist()), tuple(draws.normal(0, 0.5, sites).tolist()))


def adaptive(law: FiniteLaw, size: int, seed: int) -> MaskLaw:
    masks = size_masks(law.sites, size).masks
    return MaskLaw(masks, np.random.default_rng(seed).dirichlet(np.ones(len(masks)), size=len(law)))


def population_loss(world: Ising, masks: MaskLaw) -> MaskedLoss:
    counts = (world.law.probs[:, None] * masks.given(len(world.law))).T
    return MaskedLoss(world.law, world.statistics, MaskedCounts(masks, counts))


@pytest.mark.parametrize(("sites", "size"), [(3, 1), (3, 2), (4, 3)])
@pytest.mark.parametrize("kind", ["uniform", "adaptive"])
def test_the_hessian_of_the_loss_is_the_covariance_of_its_gradient(sites: int, size: int, kind: str) -> None:
    world = random_ising(sites, 1)
    masks = size_masks(sites, size) if kind == "uniform" else adaptive(world.law, size, 2)
    loss, step = population_loss(world, masks), 1e-5
    columns = []
    for direction in np.eye(len(world.parameter)):
        up, down = (loss(world.parameter + sign * step * direction)[1] for sign in (1, -1))
        columns.append((up - down) / (2 * step))
    assert np.abs(np.array(columns) - mask_information(world.law, world.statistics, masks)).max() < 1e-5


def test_the_gradient_of_the_loss_is_its_slope_and_the_loss_is_the_written_out_one() -> None:
    world, masks = random_ising(3, 0), size_masks(3, 2)
    loss, theta = population_loss(world, masks), np.full(6, 0.3)
    model = FiniteLaw(2, np.exp(world.statistics @ theta - logsumexp(world.statistics @ theta)))
    expected = 0.0
    for mask in masks.masks:
        joint = world.law.probs[world.law.groups(mask)]
        expected -= (joint * np.log(model.conditional(mask))).sum() / 3
    assert loss(theta)[0] == pytest.approx(expected)
    slopes = [(loss(theta + 1e-6 * e)[0] - loss(theta - 1e-6 * e)[0]) / 2e-6 for e in np.eye(6)]
    assert loss(theta)[1] == pytest.approx(slopes, abs=1e-8)


@pytest.mark.parametrize(
    ("coupling", "known", "traces"),
    [
        (0.05, False, [28.2609, 15.3355, 11.4463, 10.1116]),
        (0.3, False, [43.7325, 23.4621, 17.8210, 16.3272]),
        (0.05, True, [12.1282, 7.2826, 6.0784, 6.0784]),
        (0.3, True, [19.3806, 11.8230, 10.2487, 10.2487]),
    ],
)
def test_traces_of_the_variance_have_the_known_digits(coupling: float, known: bool, traces: list[float]) -> None:
    world = Ising(4, coupling, fields_known=known)
    found = [np.trace(asymptotic_variance(world.law, world.statistics, size_masks(4, k))) for k in (1, 2, 3, 4)]
    assert found == pytest.approx(traces, abs=1e-3)


@pytest.mark.parametrize(("coupling", "traces"), [(0.05, [10.1116] * 4), (0.3, [16.3366, 16.3272, 16.3272, 16.3272])])
def test_averaging_all_masks_of_every_sample_removes_the_effect(coupling: float, traces: list[float]) -> None:
    world = Ising(4, coupling)
    law, stats = world.law, world.statistics
    found = [np.trace(sandwich_variance(law, law, stats, size_masks(4, k), masks="all")) for k in (1, 2, 3, 4)]
    assert found == pytest.approx(traces, abs=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_hiding_more_never_increases_the_variance(seed: int) -> None:
    world = random_ising(4, seed) if seed % 2 else DiscreteFamily(4, 2, theta=0.3 * seed)
    variances = [asymptotic_variance(world.law, world.statistics, size_masks(4, k)) for k in (1, 2, 3, 4)]
    for smaller, larger in itertools.pairwise(variances):
        assert np.linalg.eigvalsh(smaller - larger)[0] > -1e-10


def test_hiding_everything_is_the_fisher_information() -> None:
    world = random_ising(3, 4)
    mean = world.law.probs @ world.statistics
    covariance = (world.statistics - mean).T @ np.diag(world.law.probs) @ (world.statistics - mean)
    assert np.allclose(fisher_information(world.law, world.statistics), covariance)


def test_with_a_true_model_the_sandwich_is_the_inverse_information() -> None:
    world, masks = random_ising(3, 5), size_masks(3, 2)
    law, stats = world.law, world.statistics
    assert np.allclose(sandwich_variance(law, law, stats, masks), asymptotic_variance(law, stats, masks))
    wrong = random_ising(3, 6).law
    curvature = masked_curvature(wrong, law, stats, masks)
    assert not np.allclose(np.linalg.inv(curvature), sandwich_variance(wrong, law, stats, masks))


@pytest.mark.parametrize("seed", range(4))
def test_the_masked_loss_is_convex(seed: int) -> None:
    world, draws = random_ising(4, seed), np.random.default_rng(seed)
    loss = population_loss(world, size_masks(4, 2))
    for _ in range(20):
        a, b = draws.normal(0, 2, (2, 10))
        assert loss((a + b) / 2)[0] <= (loss(a)[0] + loss(b)[0]) / 2 + 1e-12
