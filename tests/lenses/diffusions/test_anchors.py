"""Numbers of the theory to their digits: all values of the specification that other tests leave out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sandlab.lenses.diffusions.bounds import global_l1_bound, second_factor_finite
from sandlab.lenses.diffusions.kernels import contrast_constant, ou_optimal_risk
from sandlab.lenses.diffusions.mixing import beta_mixing, mean_norm_bound, ou_mean_norm, pair_mixing
from sandlab.worlds.diffusions.contrast import GaussianContrast, NearbyContrast, StationaryContrast
from sandlab.worlds.diffusions.grid import GridChain
from sandlab.worlds.diffusions.potentials import LogCosh, Quadratic
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck

ETAS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)


def test_smallest_risks_of_every_interval() -> None:
    stationary = (0.09797, 0.13147, 0.15987, 0.19799, 0.22332, 0.24118, 0.24885, 0.24984)
    nearby = (0.24937, 0.24843, 0.24685, 0.24212, 0.23444, 0.22049, 0.19881, 0.18350)
    assert [ou_optimal_risk(StationaryContrast(), eta) for eta in ETAS] == pytest.approx(stationary, abs=5e-4)
    assert [ou_optimal_risk(NearbyContrast.natural(eta), eta) for eta in ETAS] == pytest.approx(nearby, abs=5e-4)


def test_smallest_risks_of_every_gaussian_law() -> None:
    laws = {(0, 1.5): 0.20578, (0, 2): 0.18420, (0, 4): 0.12627, (0, 10): 0.06639, (0, 30): 0.02740}
    laws |= {(2, 1): 0.10077, (4, 1): 0.01302, (6, 1): 0.00059}
    for (mean, sd), value in laws.items():
        assert ou_optimal_risk(GaussianContrast(mean, sd), 0.5) == pytest.approx(value, abs=5e-4)


def test_truncated_constants_of_every_interval() -> None:
    stationary = (3.62, 3.18, 2.85, 2.47, 2.16, 1.44, 0.55, 0.20)
    nearby = (0.40, 0.62, 0.86, 1.22, 1.44, 1.48, 1.28, 1.26)
    assert [contrast_constant(StationaryContrast(), eta) for eta in ETAS] == pytest.approx(stationary, abs=0.02)
    found = [contrast_constant(NearbyContrast.natural(eta), eta) for eta in ETAS]
    assert found == pytest.approx(nearby, abs=0.02)


def test_both_sides_of_theorem_3_at_every_interval() -> None:
    etas = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
    found = [global_l1_bound(1.5, eta, NearbyContrast.natural(eta)) for eta in etas]
    left, right = (0.0323, 0.0327, 0.0338, 0.0354, 0.0379, 0.0431), (0.0757, 0.0754, 0.0747, 0.0742, 0.0748, 0.0808)
    assert [each["left"] for each in found] == pytest.approx(left, rel=0.01)
    assert [each["right"] for each in found] == pytest.approx(right, rel=0.01)
    scaled = [each["factor"] * eta for each, eta in zip(found, etas)][:4]
    assert scaled == pytest.approx((0.755, 0.769, 0.809, 0.876), rel=0.01)


@pytest.mark.parametrize("rho", [0.5, 1.0, 2.0])
def test_the_second_factor_is_finite_where_its_integrand_falls_in_every_direction(rho: float) -> None:
    """Far away E(max{p, p*} + q)⁴/q² is governed by π p*⁵/q²: its logarithm must fall along every ray of (z, z′)."""
    process, edge = OrnsteinUhlenbeck(Quadratic(rho)), math.log(2) / (2 * rho)
    angles = np.linspace(0, math.pi, 2001)
    z, later = (1e3 * each[:, None] for each in (np.cos(angles), np.sin(angles)))
    for eta in (0.1 * edge, 0.99 * edge, 2 * edge, 6 * edge):
        for q in (StationaryContrast(process), GaussianContrast(0.0, 3.0), NearbyContrast.natural(eta)):
            logs = process.log_stationary(z) + 5 * process.log_kernel(z, later, eta) - 2 * q.log_pdf(later, z)
            assert second_factor_finite(q, eta, rho) == bool(logs.max() < 0)
        if eta < edge:
            assert not second_factor_finite(StationaryContrast(process), eta, rho)


def test_points_and_pairs_mix_at_the_known_speeds() -> None:
    chain = GridChain(reach=6.0, cells=400)
    rows = {1: (0.2802, 0.3427, 0.3117), 2: (0.1614, 0.1851, 0.1723), 4: (0.0660, 0.0738, 0.0694)}
    for lag, values in rows.items():
        found = (
            beta_mixing(chain, 0.4 * lag),
            pair_mixing(chain, 0.2, lag),
            pair_mixing(chain, 0.2, lag, labelled=False),
        )
        assert found == pytest.approx(values, abs=1e-3)
        assert found[0] <= found[2] <= found[1]


def test_bounds_on_the_mixing_of_the_ou_process() -> None:
    chain, times = GridChain(reach=6.0, cells=400), (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
    printed = [ou_mean_norm(1.0) / math.sqrt(2 * math.pi * time) for time in times]
    assert printed == pytest.approx((1.0066, 0.6366, 0.4502, 0.3183, 0.2251, 0.1592), abs=1e-4)
    distance = chain.stationary @ np.abs(chain.x[:, None] - chain.x) @ chain.stationary
    assert distance == pytest.approx(2 / math.sqrt(math.pi), abs=1e-3)
    for time in times:
        sharper = distance / (2 * math.sqrt(math.pi * time))
        assert beta_mixing(chain, time) <= sharper <= ou_mean_norm(1.0) / math.sqrt(math.pi * time)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("rho", [0.5, 1.0, 3.0])
def test_the_mean_norm_in_every_dimension(d: int, rho: float) -> None:
    exact = math.sqrt(2 / rho) * math.gamma((d + 1) / 2) / math.gamma(d / 2)
    assert ou_mean_norm(rho, d) == pytest.approx(exact, rel=1e-12)
    peak = (rho / (2 * math.pi)) ** (d / 2)
    assert ou_mean_norm(rho, d) <= mean_norm_bound(peak, rho, d) * (1 + 1e-12)


def test_a_convex_potential_that_is_not_quadratic_mixes_below_the_bound() -> None:
    chain = GridChain(LogCosh(), 5.0, 400)
    mean = float(chain.stationary @ np.abs(chain.x))
    for time in (0.1, 0.5, 2.0):
        assert beta_mixing(chain, time) <= mean / math.sqrt(math.pi * time)
