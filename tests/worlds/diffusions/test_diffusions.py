"""Diffusions: samplers against closed forms and grid chains, pairs against their law."""

from __future__ import annotations

import numpy as np
import pytest

import sandlab as sl
from sandlab.worlds.diffusions.grid import GridChain, PlaneGrid
from sandlab.worlds.diffusions.pairs import ContrastivePairs
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
    h = world.oracle(batch)[:, 1].exp().numpy()
    y = batch.targets.numpy()
    assert ((h - y) ** 2).mean() == pytest.approx(0.2233, abs=0.006)
    assert (h - y).mean() == pytest.approx(0, abs=0.01)
