"""Closed forms, lemmas and bounds of contrastive learning of diffusions, to their digits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sandlab.lenses.diffusions.bounds import (
    curvature_bound,
    global_l1_bound,
    gobet_violations,
    local_kl_bound,
    loss_curvature,
    loss_profile,
    mean_true_density,
    random_perturbation,
    second_factor_finite,
)
from sandlab.lenses.diffusions.kernels import (
    contrast_constant,
    euler_kl,
    excess_risk,
    kernel_metrics,
    optimal_risk,
    ou_optimal_risk,
)
from sandlab.lenses.diffusions.mixing import (
    beta_mixing,
    blocking_bound,
    massart_cap,
    mean_norm_bound,
    ou_mean_norm,
    pair_mixing,
    pointwise_mixing,
    rademacher,
)
from sandlab.worlds.diffusions.contrast import GaussianContrast, NearbyContrast, StationaryContrast
from sandlab.worlds.diffusions.grid import GridChain

CHAIN = GridChain(reach=6.0, cells=400)


def test_optimal_risks_of_the_ou_process_have_the_known_digits() -> None:
    stationary = {0.02: 0.09797, 0.1: 0.15987, 0.5: 0.22332, 3.0: 0.24984}
    nearby = {0.02: 0.24937, 0.1: 0.24685, 0.5: 0.23444, 3.0: 0.18350}
    gaussian = {(0, 1.5): 0.20578, (0, 10): 0.06639, (0, 30): 0.02740, (2, 1): 0.10077, (4, 1): 0.01302}
    for eta, value in stationary.items():
        assert ou_optimal_risk(StationaryContrast(), eta) == pytest.approx(value, abs=5e-4)
    for eta, value in nearby.items():
        assert ou_optimal_risk(NearbyContrast.natural(eta), eta) == pytest.approx(value, abs=5e-4)
    for (mean, sd), value in gaussian.items():
        assert ou_optimal_risk(GaussianContrast(mean, sd), 0.5) == pytest.approx(value, abs=5e-4)


def test_truncated_contrast_constants_have_the_known_digits() -> None:
    values = {(0, 2): 1.14, (0, 1.5): 1.33, (0, 4): 1.66, (0, 10): 2.54, (2, 1): 9.76, (4, 1): 21.4, (6, 1): 37.0}
    for (mean, sd), value in values.items():
        assert contrast_constant(GaussianContrast(mean, sd), 0.5) == pytest.approx(value, abs=0.05)
    assert contrast_constant(StationaryContrast(), 0.5) == pytest.approx(2.16, abs=0.01)
    assert contrast_constant(NearbyContrast(0.5), 0.5) == pytest.approx(8.83, abs=0.02)


def test_the_best_table_has_the_optimal_risk_and_any_other_the_excess() -> None:
    chain = GridChain(reach=2.0, cells=20)
    truth, q, pi = chain.kernel(0.5), chain.stationary[None], chain.stationary
    h = np.random.default_rng(0).random(truth.shape)
    risk = 0.5 * pi @ (truth * (h - 1) ** 2 + q * h**2).sum(1)
    assert risk - optimal_risk(truth, q, pi) == pytest.approx(excess_risk(h, truth, q, pi), abs=1e-14)
    best = truth / (truth + q)
    assert 0.5 * pi @ (truth * (best - 1) ** 2 + q * best**2).sum(1) == pytest.approx(optimal_risk(truth, q, pi))


def test_the_excess_risk_identity_and_the_curvature_are_exact() -> None:
    p, q, delta = 0.8, 0.56, 0.1
    gap = p * (1 + delta) / (p * (1 + delta) + q) - p / (p + q)
    assert gap**2 == pytest.approx((p * q * delta) ** 2 / ((p * (1 + delta) + q) * (p + q)) ** 2, rel=1e-12)
    assert loss_curvature(0.1, 0.7) == pytest.approx(0.0823718, abs=1e-6)
    step = 1e-4
    values = [float(loss_profile(0.1 + shift * step, 0.7)) for shift in (-1, 0, 1)]
    assert (values[0] - 2 * values[1] + values[2]) / step**2 == pytest.approx(loss_curvature(0.1, 0.7), rel=1e-4)


@pytest.mark.parametrize(("c_q", "ratio"), [(1.01, 1.237), (2.0, 6.12), (5.0, 64.4)])
def test_the_curvature_bound_holds_with_the_known_slack(c_q: float, ratio: float) -> None:
    u, delta = np.meshgrid(np.linspace(1 / c_q, c_q, 801), np.linspace(-0.999, 1 / 6, 801))
    values = 2 * u**2 * (1 + u - 2 * delta) / ((1 + u) * (1 + u + delta) ** 4)
    assert values.min() / curvature_bound(c_q) == pytest.approx(ratio, rel=0.02)


@pytest.mark.parametrize(("reach", "eta", "c_q"), [(1.0, 0.5, 1.99), (2.0, 1.0, 5.09)])
def test_theorem_2_and_the_direct_bound_hold(reach: float, eta: float, c_q: float) -> None:
    chain, rng = GridChain(reach=reach, cells=60), np.random.default_rng(0)
    truth, q = chain.kernel(eta), chain.stationary[None]
    for _ in range(50):
        small = local_kl_bound(random_perturbation(truth, 1 / 6, rng), truth, q, chain.stationary)
        large = local_kl_bound(random_perturbation(truth, 0.9, rng), truth, q, chain.stationary)
        assert small["c_q"] == pytest.approx(c_q, abs=0.01)
        assert small["kl"] <= small["theorem"]
        assert large["kl"] <= large["direct"]


def test_theorem_3_has_the_known_sides() -> None:
    rows = {0.01: (0.0323, 0.0757), 0.05: (0.0338, 0.0747), 0.1: (0.0354, 0.0742), 0.5: (0.0431, 0.0808)}
    for eta, (left, right) in rows.items():
        found = global_l1_bound(1.5, eta, NearbyContrast.natural(eta))
        assert (found["left"], found["right"]) == pytest.approx((left, right), rel=0.01)
    for eta, value in {0.01: 0.755, 0.05: 0.809, 0.1: 0.876}.items():
        found = global_l1_bound(1.5, eta, NearbyContrast.natural(eta))
        assert found["factor"] * eta == pytest.approx(value, rel=0.01)


def test_the_mean_density_grows_like_the_root_of_the_interval() -> None:
    ratio = math.log(mean_true_density(1e-5, d=3) / mean_true_density(1e-4, d=3)) / math.log(10)
    assert ratio == pytest.approx(1.5, abs=1e-3)
    density = CHAIN.kernel(0.5) / CHAIN.width
    assert CHAIN.stationary @ (CHAIN.kernel(0.5) * density).sum(1) == pytest.approx(mean_true_density(0.5), abs=1e-4)


def test_the_second_factor_is_infinite_for_the_stationary_contrast_at_short_intervals() -> None:
    assert not second_factor_finite(StationaryContrast(), 0.3)
    assert second_factor_finite(StationaryContrast(), 2.0)
    assert second_factor_finite(NearbyContrast.natural(0.1), 0.1)


def test_gaussian_bounds_on_the_kernel_hold() -> None:
    assert sum(gobet_violations(rho, min(0.5 / rho, eta)) for rho in (0.3, 1, 2, 4) for eta in (0.01, 0.1, 0.5)) == 0


def test_mixing_of_the_ou_process_has_the_known_digits() -> None:
    values = {0.1: 0.5234, 0.25: 0.3652, 0.5: 0.2405, 1: 0.1272, 2: 0.04365, 4: 0.005835}
    for time, value in values.items():
        assert beta_mixing(CHAIN, time) == pytest.approx(value, abs=1e-3)
        assert beta_mixing(CHAIN, time) <= ou_mean_norm(1.0) / math.sqrt(math.pi * time)
    assert beta_mixing(CHAIN, 4) / beta_mixing(CHAIN, 2) == pytest.approx(0.134, abs=2e-3)


def test_the_pointwise_form_of_lemma_5_is_false_away_from_the_centre() -> None:
    values, bound = pointwise_mixing(CHAIN, 0.25), ou_mean_norm(1.0) / math.sqrt(2 * math.pi * 0.25)
    far, near = np.abs(CHAIN.x - 3).argmin(), np.abs(CHAIN.x).argmin()
    assert bound == pytest.approx(0.6366, abs=1e-4)
    assert values[far] == pytest.approx(0.854, abs=5e-3) and values[far] > bound
    assert values[near] == pytest.approx(0.2217, abs=2e-3)


def test_labelled_pairs_mix_as_the_average_of_two_lags() -> None:
    """Brute force over all pairs of labelled pairs of a small chain."""
    chain = GridChain(reach=3.0, cells=30)
    pi, step = chain.stationary, chain.kernel(0.2)
    for lag, value in ((1, 0.342476), (2, 0.184263)):
        assert pair_mixing(chain, 0.2, lag) == pytest.approx(value, abs=1e-6)
        far, near = chain.kernel(0.4 * lag), chain.kernel(0.4 * lag - 0.2)
        total = 0.0
        for x in range(30):
            for later in range(30):
                for label in (0, 1):
                    weight = pi[x] * 0.5 * (step[x, later] if label else pi[later])
                    law = near[later] if label else far[x]
                    total += weight * 0.5 * np.abs(law - pi).sum()
        assert pair_mixing(chain, 0.2, lag) == pytest.approx(total, abs=1e-10)
        assert beta_mixing(chain, 0.4 * lag) <= pair_mixing(chain, 0.2, lag, labelled=False) <= total


def test_the_bound_on_the_mean_norm_needs_its_lost_factor() -> None:
    density = 1 / math.sqrt(2 * math.pi)
    assert ou_mean_norm(1.0) == pytest.approx(0.7979, abs=1e-4)
    assert mean_norm_bound(density, 1.0) == pytest.approx(1.0)
    assert mean_norm_bound(density, 1.0, printed=True) == pytest.approx(0.3989, abs=1e-4)


def test_blocking_trades_complexity_against_mixing() -> None:
    blocks, bound = blocking_bound(2000.0, lambda t: math.exp(-t), lambda mu: massart_cap(200, mu), 0.05, most=400)
    assert 10 < blocks < 200
    assert bound < blocking_bound(20.0, lambda t: math.exp(-t), lambda mu: massart_cap(200, mu), 0.05, most=50)[1]


def test_rademacher_complexity_stays_below_massart() -> None:
    rng = np.random.default_rng(0)
    assert rademacher(rng.random((50, 400)), rng) <= massart_cap(50, 400)


def test_kernel_metrics_vanish_on_the_truth_and_know_the_gap() -> None:
    chain = GridChain(reach=5.0, cells=120)
    truth = chain.kernel(0.5)
    found = kernel_metrics(truth, truth, chain.stationary, chain.x, 0.5)
    assert max(abs(found[name]) for name in ("avg_kl", "tv", "mass_rms", "stationary_tv", "ck_error_4")) < 1e-9
    assert found["spectral_gap"] == pytest.approx(1.0, abs=0.01)
    assert euler_kl(0.5) == pytest.approx(0.0511, abs=1e-4)
