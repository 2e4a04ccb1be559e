"""Poincaré and tensorisation constants, and the theorems that use them."""

from __future__ import annotations

import numpy as np
import pytest

from sandlab.decoding.parallel.hitting import distance_curve
from sandlab.learning.parallel.information import fisher_information, mask_information
from sandlab.lenses.parallel.mixing import (
    chain_spectrum,
    dirichlet_form,
    log_sobolev_constant,
    poincare_constant,
    tensorisation_constant,
    variance_gap,
)
from sandlab.worlds.parallel.families import Ising
from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw, size_masks
from sandlab.worlds.parallel.heat_bath import block_matrix


@pytest.mark.parametrize(
    ("coupling", "constants"),
    [(0.0, [4, 2, 4 / 3, 1]), (0.05, [4.7009, 2.2336, 1.4112, 1]), (0.3, [14.6987, 5.5516, 2.5172, 1])],
)
def test_poincare_constants_have_the_known_digits(coupling: float, constants: list[float]) -> None:
    law = Ising(4, coupling).law
    found = [poincare_constant(law, size_masks(4, k)) for k in (1, 2, 3, 4)]
    assert found == pytest.approx(constants, abs=1e-3)
    assert all(found[k - 1] <= found[0] / k + 1e-9 for k in (1, 2, 3, 4))


def test_the_dirichlet_form_is_the_mean_conditional_covariance() -> None:
    law, masks = Ising(3, 0.4, 0.2).law, size_masks(3, 2)
    f, g = np.random.default_rng(0).normal(size=(2, 8))
    expected = 0.0
    for mask in masks.masks:
        for group, given in zip(law.groups(mask), law.conditional(mask)):
            covariance = given @ (f[group] * g[group]) - (given @ f[group]) * (given @ g[group])
            expected += law.probs[group].sum() * covariance / 3
    assert dirichlet_form(law, masks, f, g) == pytest.approx(expected)
    variance = law.probs @ f**2 - (law.probs @ f) ** 2
    assert variance <= poincare_constant(law, masks) * dirichlet_form(law, masks, f) + 1e-12


def test_block_dynamics_have_no_negative_eigenvalue() -> None:
    law = Ising(4, 0.5).law
    assert chain_spectrum(block_matrix(law, size_masks(4, 2)), law.probs).min() > -1e-12


@pytest.mark.parametrize("seed", range(30))
def test_the_masked_variance_is_at_most_the_poincare_constant_times_the_best(seed: int) -> None:
    draws = np.random.default_rng(seed)
    world = Ising(3, tuple(draws.normal(0, 0.7, 3).tolist()), tuple(draws.normal(0, 0.7, 3).tolist()))
    masks = size_masks(3, 1 + seed % 2)
    if seed % 3:
        masks = MaskLaw(masks.masks, draws.dirichlet(np.ones(3), size=8))
    constant = poincare_constant(world.law, masks)
    fisher, masked = (
        fisher_information(world.law, world.statistics),
        mask_information(world.law, world.statistics, masks),
    )
    assert variance_gap(fisher, masked, constant) > -1e-9


@pytest.mark.parametrize(("coupling", "constants"), [(0.0, [3, 1.5]), (0.2, [4.838, 1.960]), (0.5, [12.584, 3.896])])
def test_tensorisation_constants_have_the_known_digits(coupling: float, constants: list[float]) -> None:
    law = Ising(3, coupling).law
    found = [tensorisation_constant(law, size_masks(3, k), starts=3) for k in (1, 2)]
    assert found == pytest.approx(constants, abs=1e-3)


@pytest.mark.parametrize("k", [1, 2])
def test_distances_decay_as_the_constants_say(k: int) -> None:
    law, masks = Ising(3, 0.5).law, size_masks(3, k)
    matrix, time = block_matrix(law, masks), np.arange(41)
    start = np.full(8, 1e-3 / 7)
    start[0] = 1 - 1e-3
    chi = distance_curve(matrix, start, law, 40, distance="chi2")
    kl = distance_curve(matrix, start, law, 40, distance="kl")
    rate, slow = (1 - 1 / poincare_constant(law, masks)), 1 - 1 / tensorisation_constant(law, masks, starts=3)
    assert (chi <= rate ** (2 * time) * chi[0] * (1 + 1e-9) + 1e-14).all()
    assert (kl <= slow**time * kl[0] * (1 + 1e-9) + 1e-14).all()
    assert (distance_curve(matrix, start, law, 40) <= np.sqrt(kl / 2) + 1e-9).all()


def test_the_log_sobolev_constant_of_one_unbiased_bit_is_known() -> None:
    """The heat bath of a fair coin: Ent(f²) ≤ 2 · (½ · …): the two-point space with gap 1 has constant 1."""
    found = log_sobolev_constant(FiniteLaw(2, np.array([0.5, 0.5])), size_masks(1, 1), starts=9)
    assert found == pytest.approx(1.0, abs=1e-3)
