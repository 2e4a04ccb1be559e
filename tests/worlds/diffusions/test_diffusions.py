"""Diffusions: samplers against closed forms and grid chains, pairs against their law."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.worlds.diffusions.contrast import EmpiricalContrast, GaussianContrast, NearbyContrast, StationaryContrast
from sandlab.worlds.diffusions.grid import GridChain, PlaneGrid
from sandlab.worlds.diffusions.pairs import ContrastivePairs, StoredPairs
from sandlab.worlds.diffusions.potentials import CirclePotential, DoubleWell, LogCosh, PseudoHuber, Quadratic, Quartic
from sandlab.worlds.diffusions.processes import Langevin, OrnsteinUhlenbeck

ZOO = [Quadratic(2.0), LogCosh(), PseudoHuber(), Quartic(), DoubleWell(), CirclePotential()]


@pytest.mark.parametrize("potential", ZOO)
def test_derivatives_of_every_potential_agree_with_differences(potential: Quadratic) -> None:
    x, step = np.linspace(-2, 2, 9)[:, None], 1e-5
    slope = (potential.f(x + step) - potential.f(x - step)) / (2 * step)
    bend = (potential.grad(x + step) - potential.grad(x - step)) / (2 * step)
    np.testing.assert_allclose(potential.grad(x)[:, 0], slope, atol=1e-7)
    np.testing.assert_allclose(potential.hess(x)[:, 0], bend, atol=1e-7)


def test_only_the_first_three_potentials_satisfy_the_assumptions() -> None:
    assert [all(each.satisfies) for each in ZOO] == [True, True, True, False, False, False]


def test_the_grid_chain_approaches_the_ou_kernel_with_the_square_of_its_width() -> None:
    for cells, value in ((100, 7.88e-4), (200, 1.96e-4), (400, 4.90e-5)):
        chain = GridChain(reach=6.0, cells=cells)
        z, later = np.meshgrid(chain.x, chain.x, indexing="ij")
        truth = np.exp(OrnsteinUhlenbeck().log_kernel(z[..., None], later[..., None], 0.5)) * chain.width
        assert 0.5 * chain.stationary @ np.abs(chain.kernel(0.5) - truth).sum(1) == pytest.approx(value, rel=0.03)


def test_log_cosh_has_the_known_gap_and_its_sampler_the_known_spread() -> None:
    chain = GridChain(LogCosh(), 5.0, 500)
    assert chain.spectral_gap == pytest.approx(2.2693, abs=1e-3)
    assert chain.sd == pytest.approx(0.6374, abs=1e-4)
    process, rng = Langevin(LogCosh()), np.random.default_rng(0)
    assert process.step(process.start(20_000, rng), 0.5, rng).std() == pytest.approx(0.6374, abs=0.015)


def test_one_long_path_is_stationary_with_the_right_memory() -> None:
    path = OrnsteinUhlenbeck().path(200_000, 0.5, np.random.default_rng(0))[:, 0]
    assert path.var() == pytest.approx(1, abs=0.03)
    assert np.corrcoef(path[1:], path[:-1])[0, 1] == pytest.approx(np.exp(-0.5), abs=0.01)


def test_the_plane_grid_keeps_its_stationary_law() -> None:
    grid = PlaneGrid(cells=20)
    np.testing.assert_allclose(grid.after(grid.stationary, 0.5), grid.stationary, atol=1e-12)


@pytest.mark.parametrize("paths", ["parallel", "single"])
def test_the_oracle_is_calibrated_and_reaches_the_optimal_risk(paths: str) -> None:
    world = ContrastivePairs(paths=paths)
    batch = world.sample(40_000, rng=sl.rng(0))
    h = world.oracle(batch)[:, 0, 1].exp().numpy()
    y = batch.targets[:, 0].numpy()
    assert ((h - y) ** 2).mean() == pytest.approx(0.2233, abs=0.006)
    assert (h - y).mean() == pytest.approx(0, abs=0.01)


def test_the_kernel_of_a_langevin_process_is_that_of_the_grid_and_of_ou() -> None:
    z, later = np.random.default_rng(0).normal(size=(2, 50, 1))
    quadratic, exact = Langevin(Quadratic(1.0), reach=6.0), OrnsteinUhlenbeck()
    np.testing.assert_allclose(quadratic.log_kernel(z, later, 0.5), exact.log_kernel(z, later, 0.5), atol=5e-3)
    np.testing.assert_allclose(quadratic.log_stationary(z), exact.log_stationary(z), atol=1e-6)
    plane, line = Langevin(DoubleWell(coordinates=2), reach=4.0), Langevin(DoubleWell(), reach=4.0)
    pair = np.concatenate([z, z[::-1]], 1), np.concatenate([later, later[::-1]], 1)
    both = line.log_kernel(z, later, 0.5)
    np.testing.assert_allclose(plane.log_kernel(*pair, 0.5), both + both[::-1], atol=1e-10)


def test_stored_pairs_have_the_oracle_of_their_law() -> None:
    law = ContrastivePairs(Langevin(LogCosh(), reach=5.0), GaussianContrast(0.0, 0.96), 0.5)
    world = StoredPairs(law, chains=2000, blocks=5)
    assert world.positives.shape == (10_000, 2, 1)
    batch = world.sample(20_000, rng=sl.rng(0))
    h = world.oracle(batch)[:, 0, 1].exp().numpy()
    y = batch.targets[:, 0].numpy()
    assert ((h - y) ** 2).mean() == pytest.approx(0.2254, abs=0.006)
    assert (h - y).mean() == pytest.approx(0, abs=0.01)
    again = StoredPairs(law, chains=2000, blocks=5)
    np.testing.assert_array_equal(again.positives, world.positives)


def test_every_contrast_law_draws_alike_in_numpy_and_in_torch() -> None:
    x = np.random.default_rng(0).normal(size=(20_000, 1))
    points = np.random.default_rng(1).normal(size=(500, 1))
    laws = (StationaryContrast(), GaussianContrast(1.0, 2.0), NearbyContrast(0.5), EmpiricalContrast(points))
    for q in laws:
        first, second = q.draw(x, np.random.default_rng(2)), q.draw_tensor(torch.from_numpy(x), sl.rng(3)).numpy()
        assert first.mean() == pytest.approx(second.mean(), abs=0.06)
        assert first.std() == pytest.approx(second.std(), abs=0.06)
        grid = np.linspace(-12, 12, 2001)[:, None]
        assert np.exp(q.log_pdf(grid, np.zeros_like(grid))).sum() * 0.012 == pytest.approx(1, abs=1e-3)
