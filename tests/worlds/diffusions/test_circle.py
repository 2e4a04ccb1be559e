"""The circle: wrapped paths, a kernel without ends, and a finite c_q."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import i0, ive
from scipy.stats import vonmises

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.lenses.diffusions.kernels import optimal_risk
from sandlab.worlds.diffusions.circle import CircleLangevin, UniformContrast, circle_contrast_constant, wrapped
from sandlab.worlds.diffusions.contrast import StationaryContrast
from sandlab.worlds.diffusions.grid import GridChain
from sandlab.worlds.diffusions.pairs import ContrastivePairs
from sandlab.worlds.diffusions.potentials import CirclePotential, LogCosh

ANGLES = np.linspace(-math.pi, math.pi, 101)[:-1]


def brownian(gap: np.ndarray, time: float) -> np.ndarray:
    """Density of Brownian motion with dx = √2 dW on the circle: a sum over all windings."""
    turns = gap[..., None] + 2 * math.pi * np.arange(-20, 21)
    return (np.exp(-(turns**2) / (4 * time)) / math.sqrt(4 * math.pi * time)).sum(-1)


def test_the_stationary_law_is_von_mises() -> None:
    process = CircleLangevin(CirclePotential(kappa=1.5))
    found = np.exp(process.log_stationary(ANGLES[:, None]))
    np.testing.assert_allclose(found, vonmises(1.5).pdf(ANGLES), rtol=1e-6)
    np.testing.assert_allclose(found, np.exp(1.5 * np.cos(ANGLES)) / (2 * math.pi * i0(1.5)), rtol=1e-6)


def test_without_a_slope_the_kernel_is_that_of_brownian_motion_across_the_cut() -> None:
    process = CircleLangevin(CirclePotential(kappa=0.0))
    z, later = (each[..., None] for each in np.meshgrid(ANGLES, ANGLES, indexing="ij"))
    found = np.exp(process.log_kernel(z, later, 0.5))
    np.testing.assert_allclose(found, brownian((later - z)[..., 0], 0.5), rtol=2e-3)
    np.testing.assert_allclose(process.log_kernel(z + 2 * math.pi, later - 4 * math.pi, 0.5), np.log(found), atol=1e-9)


@pytest.mark.parametrize("time", [0.1, 0.5, 2.0])
def test_c_q_of_a_free_angle_is_the_known_number(time: float) -> None:
    gap = np.linspace(0, math.pi, 200)
    exact = np.abs(np.log(brownian(gap, time) * 2 * math.pi)).max()
    found = circle_contrast_constant(CircleLangevin(CirclePotential(kappa=0.0)), UniformContrast(), time)
    assert found == pytest.approx(exact, rel=0.01)


def test_c_q_is_finite_and_falls_as_the_chain_forgets() -> None:
    process = CircleLangevin()
    values = [circle_contrast_constant(process, StationaryContrast(process), eta) for eta in (0.1, 0.5, 2.0, 8.0)]
    assert all(np.isfinite(values)) and values == sorted(values, reverse=True) and values[-1] < 0.01


def test_paths_stay_on_the_circle_and_keep_their_law() -> None:
    process, rng = CircleLangevin(), np.random.default_rng(0)
    x = process.start(20_000, rng)
    after = process.step(x, 0.7, rng)
    assert np.abs(after).max() <= math.pi
    mean = ive(1, 1.0) / ive(0, 1.0)  # E cos x of the von Mises law
    assert np.cos(x).mean() == pytest.approx(mean, abs=0.02) and np.cos(after).mean() == pytest.approx(mean, abs=0.02)
    chain = GridChain(CirclePotential(), math.pi, 300)
    correlation = chain.stationary * np.sin(chain.x) @ (chain.kernel(0.7) @ np.sin(chain.x))
    assert (np.sin(x) * np.sin(after)).mean() == pytest.approx(correlation, abs=0.02)


@pytest.mark.parametrize("uniform", [True, False])
def test_the_oracle_of_pairs_on_the_circle_reaches_the_optimal_risk(uniform: bool) -> None:
    process = CircleLangevin()
    q = UniformContrast() if uniform else StationaryContrast(process)
    world = ContrastivePairs(process, q, 0.5)
    batch = world.sample(40_000, rng=sl.rng(0))
    h, y = world.oracle(batch)[:, 0, 1].exp().numpy(), batch.targets[:, 0].numpy()
    chain = GridChain(CirclePotential(), math.pi, 400)
    law = np.full((1, 400), 1 / 400) if uniform else chain.stationary[None]
    assert ((h - y) ** 2).mean() == pytest.approx(optimal_risk(chain.kernel(0.5), law, chain.stationary), abs=0.004)


def test_angles_are_wrapped_and_lines_are_refused() -> None:
    np.testing.assert_allclose(
        wrapped(np.array([math.pi, 3 * math.pi, -math.pi, 7.0])), [-math.pi] * 3 + [7 - 2 * math.pi]
    )
    with pytest.raises(BadInput, match="circle"):
        CircleLangevin(LogCosh())
