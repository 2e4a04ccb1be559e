"""Fits by likelihood and by masked conditionals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.parallel.generalization import (
    TotalVariationBound,
    empirical_law,
    masked_divergence,
    sampled_divergence,
)
from sandlab.learning.parallel.mask_design import best_mask_law
from sandlab.learning.parallel.pseudolikelihood import draw_counts, fit_masked
from sandlab.lenses.parallel.mixing import poincare_constant, tensorisation_constant
from sandlab.worlds.parallel.families import Ising
from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw, size_masks

WORLD = Ising(3, 0.3, 0.1)


def states(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).choice(8, size=n, p=WORLD.law.probs)


def test_hiding_all_sites_is_maximum_likelihood() -> None:
    sample = states(500)
    counts = np.bincount(sample, minlength=8)

    def negative(theta: np.ndarray) -> float:
        scores = WORLD.statistics @ theta
        return float(logsumexp(scores) - counts @ scores / 500)

    by_hand = minimize(negative, np.zeros(6), tol=1e-12).x
    assert fit_masked(WORLD, sample, loss="mle", rng=sl.rng(0)).theta == pytest.approx(by_hand, abs=1e-4)
    assert fit_masked(WORLD, sample, size=3, rng=sl.rng(0)).theta == pytest.approx(by_hand, abs=1e-4)


def test_descent_and_quasi_newton_find_the_same_optimum() -> None:
    sample = states(400)
    found = [fit_masked(WORLD, sample, size=2, optimizer=name, rng=sl.rng(1)).theta for name in ("l-bfgs", "descent")]
    assert found[0] == pytest.approx(found[1], abs=1e-4)


@pytest.mark.parametrize("loss", ["weighted", "adaptive"])
def test_every_loss_finds_the_parameters_from_many_samples(loss: str) -> None:
    masks = size_masks(3, 2).masks
    shape = (8,) if loss == "adaptive" else ()
    law = MaskLaw(masks, np.random.default_rng(0).dirichlet(np.ones(3), size=shape))
    fitted = fit_masked(WORLD, states(60_000), loss=loss, mask_law=law, rng=sl.rng(2))
    assert np.abs(fitted.theta - WORLD.parameter).max() < 0.05


def test_ignoring_how_the_mask_was_chosen_is_biased() -> None:
    """Lemma 4.3.1: the plain conditional under an adaptive law does not find the parameters."""
    weights = np.where(WORLD.law.states[:, :1] == 1, [[0.9, 0.05, 0.05]], [[0.1, 0.45, 0.45]])
    law = MaskLaw(np.eye(3, dtype=bool), weights)
    sample = states(200_000)
    right = fit_masked(WORLD, sample, loss="adaptive", mask_law=law, rng=sl.rng(3)).theta
    data = draw_counts(sample, law, 8, masks_per_sample=1, rng=sl.rng(3))
    from sandlab.learning.parallel.pseudolikelihood import MaskedCounts, MaskedLoss

    blind = MaskedLoss(WORLD.law, WORLD.statistics, MaskedCounts(size_masks(3, 1), data.counts))
    wrong = minimize(blind, np.zeros(6), jac=True).x
    assert np.abs(right - WORLD.parameter).max() < 0.05 < 0.3 < np.abs(wrong - WORLD.parameter).max()


def test_a_loss_without_its_masks_is_refused() -> None:
    with pytest.raises(BadInput, match="mask_law"):
        fit_masked(WORLD, states(5), loss="adaptive", rng=sl.rng(0))


def random_pair(seed: int) -> tuple[FiniteLaw, FiniteLaw]:
    first, second = np.random.default_rng(seed).dirichlet(np.ones(4), size=2)
    return FiniteLaw(2, first), FiniteLaw(2, second)


@pytest.mark.gate(4)
@pytest.mark.parametrize("seed", range(8))
def test_kl_is_at_most_the_tensorisation_constant_times_the_masked_loss(seed: int) -> None:
    truth, model = random_pair(seed)
    masks = size_masks(2, 1)
    kl = float((truth.probs * np.log(truth.probs / model.probs)).sum())
    constant = tensorisation_constant(model, masks, starts=6)
    assert constant >= poincare_constant(model, masks)
    assert kl <= constant * masked_divergence(truth, model, masks) * (1 + 1e-9)
    assert 0.5 * np.abs(truth.probs - model.probs).sum() <= np.sqrt(kl / 2)


def test_the_bound_exceeds_the_distance_and_falls_with_samples_and_masks() -> None:
    world, masks = Ising(2, 0.3, 0.1), size_masks(2, 1)
    sample = np.random.default_rng(0).choice(4, size=500, p=world.law.probs)
    theta = fit_masked(world, sample, size=1, rng=sl.rng(0)).theta
    scores = world.statistics @ theta
    model = FiniteLaw(2, np.exp(scores - logsumexp(scores)))
    empirical = empirical_law(2, 4, sample)
    data = draw_counts(sample, masks, 4, masks_per_sample=4, rng=sl.rng(1))
    loss = sampled_divergence(empirical, model, data)
    floor = min(model.conditional(mask).min() for mask in masks.masks)
    bound = TotalVariationBound(2, 2, 500, 4, floor=floor)
    assert abs(loss - masked_divergence(empirical, model, masks)) < bound.concentration
    assert (
        bound(loss, tensorisation_constant(model, masks, starts=6)) > 0.5 * np.abs(model.probs - world.law.probs).sum()
    )
    assert 0.5 * np.abs(empirical.probs - world.law.probs).sum() < bound.empirical_distance
    values = [TotalVariationBound(2, 2, n, m)(0.1, 2.0) for n, m in ((100, 10), (1000, 10), (1000, 100))]
    assert values[0] > values[1] > values[2]


def test_the_best_mask_law_beats_the_uniform_one() -> None:
    world = Ising(3, (1.0, 0.0, 0.0), 0.0)
    design = best_mask_law(world.law, world.statistics, size_masks(3, 2).masks, goal="gap", steps=120)
    assert design.values[-1] < design.values[0] - 0.1
    assert poincare_constant(world.law, design.mask_law) == pytest.approx(design.values[-1], rel=0.05)
    adaptive = best_mask_law(world.law, world.statistics, size_masks(3, 1).masks, adaptive=True, steps=60)
    assert adaptive.mask_law.adaptive and adaptive.values[-1] < adaptive.values[0]
