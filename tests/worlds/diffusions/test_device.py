"""Pairs that stay on their device: the same laws as the ordinary ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.worlds.diffusions._device import SideBySide, SimulatedPairs, SteadyOU, slope
from sandlab.worlds.diffusions.contrast import GaussianContrast, StationaryContrast
from sandlab.worlds.diffusions.pairs import ContrastivePairs
from sandlab.worlds.diffusions.potentials import DoubleWell, LogCosh, Quadratic, Quartic
from sandlab.worlds.diffusions.processes import Langevin, OrnsteinUhlenbeck

TILTED = Quadratic(((2.0, 0.5), (0.5, 1.0)))


def test_the_steady_process_draws_what_the_ordinary_one_draws() -> None:
    for law in (OrnsteinUhlenbeck, SteadyOU):
        process = law(TILTED)
        x = process.start_tensor(5, sl.rng(0))
        after = process.step_tensor(x, 0.3, sl.rng(1))
        pairs = ContrastivePairs(process, StationaryContrast(process), 0.3).sample(6, rng=sl.rng(2))
        found = torch.cat([x.flatten(), after.flatten(), pairs.inputs.flatten()])
        expected = found if law is OrnsteinUhlenbeck else expected
        torch.testing.assert_close(found, expected)


def test_laws_side_by_side_have_a_share_of_rows_each() -> None:
    laws = GaussianContrast(0.0, 1.0), GaussianContrast(50.0, 0.1)
    drawn = SideBySide(laws).draw_tensor(torch.zeros(20_000, 1), sl.rng(0))
    first, second = drawn[:10_000], drawn[10_000:]
    assert abs(float(first.mean())) < 0.05 and abs(float(first.std()) - 1) < 0.05
    assert abs(float(second.mean()) - 50) < 0.01 and abs(float(second.std()) - 0.1) < 0.01
    with pytest.raises(BadInput, match="multiple"):
        SideBySide(laws).draw_tensor(torch.zeros(3, 1), sl.rng(0))


def test_simulated_pairs_have_the_moments_of_the_grid_chain() -> None:
    process = Langevin(LogCosh(), reach=5.0)
    world = SimulatedPairs(ContrastivePairs(process, GaussianContrast(), 0.5), chains=4000, blocks=3)
    stored = world.stored().double().numpy()[..., 0]
    chain = process.grid
    assert stored.shape == (12_000, 2)
    assert abs(stored.std() - chain.sd) < 0.02
    later = chain.stationary * chain.x @ (chain.kernel(0.5) @ chain.x)
    assert abs((stored[:, 0] * stored[:, 1]).mean() - later) < 0.02
    assert world.stored() is world.stored()
    batch = world.sample(8, rng=sl.rng(0))
    assert batch.inputs.shape == (8, 2) and world.oracle(batch).shape == (8, 1, 2)


def test_slopes_of_tensors_are_those_of_arrays() -> None:
    x = np.linspace(-2, 2, 9)[:, None]
    for potential in (LogCosh(), DoubleWell()):
        np.testing.assert_allclose(slope(potential, torch.from_numpy(x)).numpy(), potential.grad(x), atol=1e-14)
    with pytest.raises(BadInput, match="log cosh"):
        slope(Quartic(), torch.from_numpy(x))
